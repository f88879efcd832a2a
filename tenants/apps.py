from django.apps import AppConfig
from django.urls import register_converter


class TenantsConfig(AppConfig):
    name = "tenants"

    def ready(self) -> None:
        from tenants.api.converters import IdConverter  # noqa: PLC0415 - after the apps are loaded

        register_converter(IdConverter, "id")
