"""Where e-mails go."""

from pathlib import Path

import pytest

from config.mailing import mail_settings
from config.supervisor.failures import CannotStart
from config.supervisor.paths import DataFolder

FOLDER = DataFolder(Path("/data"))


def test_without_a_server_mails_lie_in_the_data_folder():
    assert mail_settings({}, FOLDER) == {
        "EMAIL_BACKEND": "django.core.mail.backends.filebased.EmailBackend",
        "EMAIL_FILE_PATH": "/data/mail",
    }


@pytest.mark.parametrize(
    ("scheme", "port", "secure"),
    [
        ("smtp", 25, {}),
        ("smtp+tls", 587, {"EMAIL_USE_TLS": True}),
        ("smtps", 465, {"EMAIL_USE_SSL": True}),
    ],
)
def test_a_server_is_named_by_a_url(scheme, port, secure):
    found = mail_settings({"EMAIL_URL": f"{scheme}://me%40x:p%2Fw@mail.test"}, FOLDER)
    assert found == {
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": "mail.test",
        "EMAIL_PORT": port,
        "EMAIL_HOST_USER": "me@x",
        "EMAIL_HOST_PASSWORD": "p/w",
        "EMAIL_TIMEOUT": 10,
        **secure,
    }


@pytest.mark.parametrize("url", ["http://mail.test", "mail.test", "smtp://"])
def test_another_url_starts_nothing(url):
    with pytest.raises(CannotStart):
        mail_settings({"EMAIL_URL": url}, FOLDER)
