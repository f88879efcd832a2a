"""What is taken from django-unfold, as types know it: it is an admin site like Django's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

if TYPE_CHECKING:
    from django import forms
    from django.contrib import admin

    AdminSite = admin.AdminSite
    ModelAdmin = admin.ModelAdmin[Any]
    ModelForm = forms.ModelForm[Any]
    from django.contrib.admin import RelatedFieldListFilter as AutocompleteFilter
    from django.forms import (
        EmailInput,
        NumberInput,
        PasswordInput,
        Select,
        Textarea,
        TextInput,
    )

    def action(*, description: str) -> Callable[[F], F]: ...

else:
    from django.forms import ModelForm
    from unfold.admin import ModelAdmin
    from unfold.contrib.filters.admin import AutocompleteSelectFilter as AutocompleteFilter
    from unfold.decorators import action
    from unfold.sites import UnfoldAdminSite as AdminSite
    from unfold.widgets import UnfoldAdminEmailInputWidget as EmailInput
    from unfold.widgets import UnfoldAdminIntegerFieldWidget as NumberInput
    from unfold.widgets import UnfoldAdminPasswordWidget as PasswordInput
    from unfold.widgets import UnfoldAdminSelectWidget as Select
    from unfold.widgets import UnfoldAdminTextareaWidget as Textarea
    from unfold.widgets import UnfoldAdminTextInputWidget as TextInput

__all__ = [
    "AdminSite",
    "AutocompleteFilter",
    "EmailInput",
    "ModelAdmin",
    "ModelForm",
    "NumberInput",
    "PasswordInput",
    "Select",
    "TextInput",
    "Textarea",
    "action",
]
