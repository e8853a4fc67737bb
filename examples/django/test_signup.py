"""A Django project in one file, with a view that emails a code and a test of it."""

import os
import sys

import django
from django.conf import settings
from django.core.mail import send_mail
from django.http import HttpResponse
from django.test import SimpleTestCase, override_settings
from django.test.utils import get_runner
from django.urls import path

from postroom import Postroom

if not settings.configured:
    settings.configure(
        ROOT_URLCONF="test_signup",
        SECRET_KEY="only for this example",
        EMAIL_HOST=os.environ.get("SMTP_HOST", "127.0.0.1"),
        EMAIL_PORT=int(os.environ.get("SMTP_PORT", "1025")),
    )
postroom = Postroom(api_key="dev", base_url=os.environ.get("POSTROOM_URL", "http://127.0.0.1:8025"))


def sign_up(request):
    """Is the program under test: it sends a code to each new user."""
    send_mail("Welcome", "Your verification code is 482913.", "Shop <noreply@shop.example>", [request.POST["email"]])
    return HttpResponse("sent")


urlpatterns = [path("signup", sign_up)]


# Django's test runner collects mail in memory. This sends it over SMTP, as in production.
@override_settings(EMAIL_BACKEND="django.core.mail.backends.smtp.EmailBackend")
class SignUp(SimpleTestCase):
    def test_a_new_user_gets_a_code(self):
        inbox = postroom.create_inbox()
        self.assertEqual(self.client.post("/signup", {"email": inbox.address}).status_code, 200)
        self.assertEqual(inbox.code(timeout=30), "482913")


if __name__ == "__main__":
    django.setup()
    sys.exit(bool(get_runner(settings)().run_tests(["test_signup"])))
