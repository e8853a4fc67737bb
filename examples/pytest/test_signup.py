"""Each test has an address of its own, from the fixture `inbox`, so tests may run at the same time."""

import os
import smtplib
from email.message import EmailMessage

# The client of Postroom reads these; `postroom dev` takes any key.
os.environ.setdefault("POSTROOM_URL", "http://127.0.0.1:8025")
os.environ.setdefault("POSTROOM_KEY", "dev")


def sign_up(address):
    """Is the program under test: it sends a code to each new user."""
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "Shop <noreply@shop.example>", address, "Welcome"
    mail.set_content("Your verification code is 482913.")
    with smtplib.SMTP(os.environ.get("SMTP_HOST", "127.0.0.1"), int(os.environ.get("SMTP_PORT", "1025"))) as server:
        server.send_message(mail)


def test_a_new_user_gets_a_code(inbox):
    sign_up(inbox.address)
    assert inbox.code(timeout=30) == "482913"
