"""Submits the mail that the environment describes, with smtplib."""
import json, os, smtplib, ssl
from email.message import EmailMessage

mail = json.loads(os.environ["MAIL"])
m = EmailMessage()
m["From"], m["To"], m["Subject"] = mail["from"], ", ".join(mail["to"]), mail["subject"]
if mail.get("bcc"):
    m["Bcc"] = ", ".join(mail["bcc"])
m.set_content(mail["text"])
if mail.get("html"):
    m.add_alternative(mail["html"], subtype="html")
for f in mail.get("files") or []:
    content = (b"0123456789abcdef" * (f["size"] // 16 + 1))[: f["size"]]
    m.add_attachment(content, maintype="application", subtype="octet-stream", filename=f["name"])
context = ssl._create_unverified_context()
host, port = os.environ["HOST"], int(os.environ["PORT"])
if os.environ["SECURE"] == "1":
    client = smtplib.SMTP_SSL(host, port, context=context)
else:
    client = smtplib.SMTP(host, port)
    client.starttls(context=context)
try:
    client.login("api", os.environ["KEY"])
    refused = client.send_message(m)
    print("250", refused)
except smtplib.SMTPException as e:
    print("refused:", e)
