"""A test of a sign-up that sends a code by mail.

Each test has an address of its own, so tests may run at the same time.
"""

import os
import smtplib
import unittest
from email.message import EmailMessage

from postroom import Postroom

HOST = os.environ.get("SMTP_HOST", "127.0.0.1")
PORT = int(os.environ.get("SMTP_PORT", "1025"))
postroom = Postroom(api_key="dev", base_url=os.environ.get("POSTROOM_URL", "http://127.0.0.1:8025"))


def sign_up(address):
    """Is the program under test: it sends a code to whoever signs up."""
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "Shop <noreply@shop.example>", address, "Welcome"
    mail.set_content("Your verification code is 482913.")
    with smtplib.SMTP(HOST, PORT) as server:
        server.send_message(mail)


class SignUp(unittest.TestCase):
    def test_a_new_user_gets_a_code(self):
        inbox = postroom.create_inbox()
        sign_up(inbox.address)
        self.assertEqual(inbox.code(), "482913")


if __name__ == "__main__":
    unittest.main()
