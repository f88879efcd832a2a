from django.apps import AppConfig


class InterruptsConfig(AppConfig):
    name = "interrupts"
