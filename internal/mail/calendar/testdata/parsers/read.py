"""Reads calendars, a JSON list of texts, and writes what icalendar finds in each."""
import datetime
import json
import sys

import icalendar


def in_words(value):
    if not isinstance(value, datetime.datetime):
        return value.isoformat()
    return value.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def read(text):
    calendar = icalendar.Calendar.from_ical(text)
    (event,) = calendar.walk("VEVENT")
    attendees = event["ATTENDEE"]
    attendees = attendees if isinstance(attendees, list) else [attendees]
    return {
        "method": str(calendar["METHOD"]),
        "uid": str(event["UID"]),
        "sequence": int(event["SEQUENCE"]),
        "summary": str(event["SUMMARY"]),
        "organizer": str(event["ORGANIZER"]),
        "attendees": len(attendees),
        "attendee": str(attendees[0]),
        "partstat": str(attendees[0].params["PARTSTAT"]),
        "start": in_words(event["DTSTART"].dt),
        "recurrence": in_words(event["RECURRENCE-ID"].dt) if "RECURRENCE-ID" in event else "",
        "comment": str(event["COMMENT"]),
    }


json.dump([read(text) for text in json.load(sys.stdin)], sys.stdout)
