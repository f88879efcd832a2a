import os
from urllib.parse import urlsplit

from config.database import databases
from config.mailing import mail_settings
from config.supervisor.failures import CannotStart
from config.supervisor.keyfile import load_keys
from config.supervisor.paths import PROJECT, data_folder


def whole_number(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    if text and not text.isdecimal():
        raise CannotStart(f"{name} is a whole number, not {text!r}")
    return int(text or default)


BASE_DIR = PROJECT
DATA_FOLDER = data_folder(os.environ)
_keys = load_keys(DATA_FOLDER, os.environ)

# Keys
SECRET_KEY = _keys.secret_key
ABEYANCE_MASTER_KEYS: dict[str, bytes] = _keys.master
ABEYANCE_CURRENT_KEY: str = _keys.current

# Where it is reached
DEBUG = False
ABEYANCE_PORT = whole_number("ABEYANCE_PORT", 8765)
ABEYANCE_HOST = os.environ.get("ABEYANCE_HOST", "127.0.0.1")
# What links in e-mails begin with.
ABEYANCE_BASE_URL = os.environ.get("ABEYANCE_BASE_URL") or f"http://127.0.0.1:{ABEYANCE_PORT}"
ALLOWED_HOSTS = [
    host.strip()
    for host in os.environ.get("ABEYANCE_HOSTS", "127.0.0.1,localhost,[::1]").split(",")
    if host.strip()
]
# `host:port` pairs that a tool may call although their address is private.
ABEYANCE_ALLOWED_HOSTS = [
    pair.strip() for pair in os.environ.get("ABEYANCE_ALLOWED_HOSTS", "").split(",") if pair.strip()
]
# A database that was given may be anybody's: there the demo is made only where it is asked for.
ABEYANCE_DEMO = (
    os.environ.get("ABEYANCE_DEMO") or ("0" if os.environ.get("DATABASE_URL") else "1")
) != "0"
ABEYANCE_WORKERS = whole_number("ABEYANCE_WORKERS", 4)
# Who has it reads /metrics; without one they are for this machine, and name no tenant.
ABEYANCE_METRICS_TOKEN = os.environ.get("ABEYANCE_METRICS_TOKEN", "").strip()
if ABEYANCE_METRICS_TOKEN and len(ABEYANCE_METRICS_TOKEN) < 16:
    raise CannotStart("ABEYANCE_METRICS_TOKEN is too short: at least 16 characters")
# How long `up` lets its processes finish what they are in when it is told to stop.
ABEYANCE_STOP_SECONDS = whole_number("ABEYANCE_STOP_SECONDS", 7)
# How many seconds `up` waits at most before it starts a process again that keeps ending.
ABEYANCE_LONGEST_PAUSE = whole_number("ABEYANCE_LONGEST_PAUSE", 8)
# Per web process; each keeps a database connection.
ABEYANCE_WEB_THREADS = whole_number("ABEYANCE_WEB_THREADS", 4)

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
APPEND_SLASH = False

INSTALLED_APPS = [
    "config",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "django.contrib.admin.apps.SimpleAdminConfig",  # registered by config/urls.py: workers need none
    "django.contrib.staticfiles",
    "guardian",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "tenants",
    "interrupts",
    "approvals",
    "delegation",
]
MIDDLEWARE = [
    "config.security.PageHeaders",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
STATIC_URL = "/static/"
STATIC_ROOT = None  # served from where the packages keep them, found once at start
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False

# Database: the app role, the owner and the sweep on one database (config/database.py)
DATABASES = databases(os.environ, DATA_FOLDER)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"

# People
AUTH_USER_MODEL = "tenants.User"
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "guardian.backends.ObjectPermissionBackend",
]
ANONYMOUS_USER_NAME = None
GUARDIAN_MONKEY_PATCH_USER = False
LOGIN_URL = "sign-in"
# How many proxies of one's own, each adding to X-Forwarded-For, stand before the service.
ABEYANCE_PROXIES = whole_number("ABEYANCE_PROXIES", 0)
# Who reaches the service by https speaks to a proxy that takes the TLS off: what is asked there is
# of this origin, and its cookies go nowhere else.
CSRF_TRUSTED_ORIGINS = ["{0.scheme}://{0.netloc}".format(urlsplit(ABEYANCE_BASE_URL))]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = ABEYANCE_BASE_URL.startswith("https://")
SESSION_COOKIE_AGE = 12 * 60 * 60
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"

# Admin
UNFOLD = {
    "SITE_TITLE": "Abeyance admin",
    "SITE_HEADER": "Abeyance",
    "SHOW_VIEW_ON_SITE": False,
    "ACCOUNT": {"navigation": [{"title": "Your profile", "link": "/profile"}]},
}

# API
# The front refuses larger bodies before Django sees them (config/asgi.py).
DATA_UPLOAD_MAX_MEMORY_SIZE = 17 * 1024 * 1024
REST_FRAMEWORK = {
    "EXCEPTION_HANDLER": "config.errors.as_problem",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Abeyance",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PUBLIC": True,
    "SERVE_PERMISSIONS": [],
    "SERVE_AUTHENTICATION": [],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/v1",
}

# What the engine asks upwards: who may let a step run, who else holds rows against a run's journal,
# and who else sweeps.
AUTHORIZER = "delegation.authorizer.DelegatingAuthorizer"
LEARNED = "delegation.beside.of_gate"  # what approvals asks upwards, of one gate and one person
LEARNED_NEWS = "delegation.services.news.RuleNews"  # likewise, what its mails say of rules
RUN_VERIFIERS = ["approvals.verification.of_run"]
SWEEPERS = [
    "approvals.sweep.sweep_gates",
    "tenants.idempotency.sweep_answers",
    "tenants.outbox.sweep_outbox",
    "interrupts.anchors.write_due",
    "delegation.sweep.sweep_events",
]
# Who writes the e-mails that rows of the outbox stand for, by the first part of their kind.
OUTBOX = {"notice": "approvals.services.notices.compose"}

# E-mail: a server where EMAIL_URL names one, else a folder in the data folder.
globals().update(mail_settings(os.environ, DATA_FOLDER))
DEFAULT_FROM_EMAIL = os.environ.get("ABEYANCE_MAIL_FROM", "Abeyance <abeyance@localhost>")

# Where the heads of journals are written, outside the database, so that a database put back to an
# older state is detected. Keep it where who may change the database may not change it.
ABEYANCE_ANCHOR = os.environ.get("ABEYANCE_ANCHOR") or str(DATA_FOLDER.root / "anchor.jsonl")

# Celery: messages are hints, rows are truth. A message is acknowledged on receipt; a lost one is
# found by the sweep, so nothing here waits for a broker.
CELERY_BROKER_URL = (
    os.environ.get("CELERY_BROKER_URL") or f"redis+socket://{DATA_FOLDER.broker_socket}"
)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CONCURRENCY = ABEYANCE_WORKERS
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_STATE_DB = None
CELERY_TASK_TIME_LIMIT = 240
CELERY_TASK_SOFT_TIME_LIMIT = None
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 3600, "socket_connect_timeout": 2}
CELERY_TASK_PUBLISH_RETRY = False
CELERY_BEAT_SCHEDULE_FILENAME = str(DATA_FOLDER.beat / "schedule")
CELERY_TIMEZONE = "UTC"
# Every worker process sweeps by itself; beat is there in case none gets to it.
CELERY_BEAT_SCHEDULE = {
    "sweep": {"task": "interrupts.sweep", "schedule": 5.0, "options": {"expires": 5}}
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": os.environ.get("ABEYANCE_LOG_LEVEL", "INFO")},
    "loggers": {
        "django": {"level": "INFO"},
        "django.request": {"level": "ERROR"},
        "httpx": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
    },
}
