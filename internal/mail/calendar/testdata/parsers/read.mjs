// Reads calendars, a JSON list of texts, and writes what ical.js finds in each.
import ICAL from "ical.js";

let input = "";
for await (const piece of process.stdin) input += piece;
const found = JSON.parse(input).map((text) => {
  const calendar = new ICAL.Component(ICAL.parse(text));
  const event = new ICAL.Event(calendar.getFirstSubcomponent("vevent"));
  const [attendee] = event.attendees;
  return {
    method: calendar.getFirstPropertyValue("method"),
    uid: event.uid,
    sequence: event.sequence,
    summary: event.summary,
    organizer: event.organizer,
    attendees: event.attendees.length,
    attendee: attendee.getFirstValue(),
    partstat: attendee.getParameter("partstat"),
    start: event.startDate.isDate ? event.startDate.toString() : event.startDate.toJSDate().toISOString().replace(".000", ""),
    recurrence: event.recurrenceId ? event.recurrenceId.toString() : "",
    comment: event.component.getFirstPropertyValue("comment"),
  };
});
console.log(JSON.stringify(found));
