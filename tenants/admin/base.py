"""Two kinds of tables in the admin: configuration, which services change, and what is only read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, Generic, TypeVar

from django.contrib import admin, messages
from django.db import IntegrityError, models, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from psycopg.errors import UniqueViolation

from config.errors import InvalidBody, Problem
from config.visible import labelled
from tenants.admin.journal import entries_of
from tenants.admin.paging import CappedPaginator, SearchedById
from tenants.admin.shown import shown
from tenants.admin.site import TenantAdminSite
from tenants.admin.standing import Standing, standing_of
from tenants.admin.unfolded import ModelAdmin, ModelForm
from tenants.changes import Change

M = TypeVar("M", bound=models.Model)
TAKEN: Final = (
    "Another has just saved one of this name. Look at it, and save yours if it is not that."
)
# A request's own place for what its form was refused with, and for what is shown once.
_REFUSAL: Final = "abeyance.refusal"
_SECRETS: Final = "abeyance.secrets"


class ServiceForm(ModelForm):
    """A form whose meaning a service judges: its refusal is shown where it points to."""

    refusal: ClassVar[Problem | None] = None

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        if self.refusal is not None:
            pairs = [(one["pointer"], one["detail"]) for one in self.refusal.errors]
            self.add_faults(pairs or [("", self.refusal.detail)])
        return cleaned

    def add_faults(self, faults: Sequence[tuple[str, str]], *, at: str | None = None) -> None:
        """Show each fault at the field its pointer begins with, or at the field ``at``."""
        for place, detail in faults:
            named, _, rest = place.removeprefix("/").partition("/")
            field, shown = (at, place) if at else (named, rest and f"/{rest}")
            told = f"{shown}: {detail}" if shown else detail
            self.add_error(field if field in self.fields else None, told)


class ScopedAdmin(ModelAdmin):
    """A table of one tenant: what its site has let in may look, and each row is the tenant's."""

    noun: ClassVar[str] = ""  # of its entries in the tenant's journal
    admin_site: TenantAdminSite
    paginator = CappedPaginator
    show_full_result_count = False
    list_per_page = 50
    actions = None
    show_facets = admin.ShowFacets.NEVER  # they count every row, a filter each

    def get_list_display(self, request: HttpRequest) -> tuple[Any, ...]:  # noqa: ARG002 - Django's signature
        return tuple(shown(self.model, str(name)) for name in self.list_display)

    def get_list_display_links(self, request: HttpRequest, list_display: Any) -> tuple[Any, ...]:
        links = super().get_list_display_links(request, list_display) or ()
        return tuple(shown(self.model, one) if isinstance(one, str) else one for one in links)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.admin_site.has_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 - Django's signature
        return self.admin_site.has_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002 - Django's signature
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 - Django's signature
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 - Django's signature
        return False

    def found(self, request: HttpRequest, object_id: str) -> Any:
        """Return the tenant's row of that id; Http404 where it is not there."""
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        return row

    def _get_obj_does_not_exist_redirect(self, *_args: Any) -> HttpResponse:
        """A row of another tenant and none at all look alike, and not like a page."""
        raise Http404

    def journal_name(self, obj: Any) -> str:
        return str(obj)

    def history_view(
        self,
        request: HttpRequest,
        object_id: str,
        extra_context: dict[str, Any] | None = None,  # noqa: ARG002 - Django's signature
    ) -> HttpResponse:
        """Show what the tenant's journal says of the row, in place of Django's own log."""
        row = self.found(request, object_id)
        context = {
            **self.admin_site.each_context(request),
            "title": f"Journal of {row}",
            "opts": self.opts,
            "entries": entries_of(self.noun, self.journal_name(row)) if self.noun else (),
        }
        return TemplateResponse(request, "admin/journal.html", context)

    def message_user(self, request: HttpRequest, message: Any, *args: Any, **kwargs: Any) -> None:
        """Say what was done; the names in it hide nothing."""
        super().message_user(request, labelled(message), *args, **kwargs)

    def log_addition(self, *_args: Any) -> Any:
        """The tenant's journal has it."""

    def log_change(self, *_args: Any) -> Any:
        """The tenant's journal has it."""

    def log_deletions(self, *_args: Any) -> Any:
        """The tenant's journal has it."""


class ReadAdmin(SearchedById, ScopedAdmin, Generic[M]):
    """A table that nobody changes here: its rows by id, the newest first."""

    ordering = ("-id",)
    sortable_by = ()
    hidden: ClassVar[frozenset[str]] = frozenset()

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[Any, ...]:  # noqa: ARG002 - Django's signature
        """Every column but bodies, which the people's pages show as their readers may see them."""
        columns = [
            field.name
            for field in self.model._meta.concrete_fields  # noqa: SLF001 - Django documents it
            if not isinstance(field, models.BinaryField)
            and field.name != "tenant"
            and field.name not in self.hidden
        ]
        return ("page", *(shown(self.model, name) for name in columns))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[Any, ...]:
        return self.get_fields(request, obj)

    def page(self, obj: M) -> str:
        """Where people look at it."""
        url = self.people_url(obj)
        return (
            format_html(
                '<a class="text-primary-600 dark:text-primary-500" href="{}">{}</a>', url, url
            )
            if url
            else "—"
        )

    def people_url(self, obj: M) -> str | None:  # noqa: ARG002 - overridden
        return None


def _refusal(fault: Problem | IntegrityError) -> Problem:
    """Say what the form is refused with: two that are saved at once may be of one name."""
    if isinstance(fault, Problem):
        return fault
    if not isinstance(fault.__cause__, UniqueViolation):
        raise fault
    return InvalidBody(TAKEN)


class ConfigAdmin(ScopedAdmin):
    """A table of configuration: forms and acts that call services, one transaction each."""

    form = ServiceForm

    def store(self, standing: Standing, obj: Any, form: Any, *, secrets: dict[str, str]) -> Any:
        """Have a service make it so; return the row. What goes into ``secrets`` is shown once."""
        raise NotImplementedError

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.admin_site.has_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 - Django's signature
        return self.admin_site.has_permission(request)

    def get_form(
        self,
        request: HttpRequest,
        obj: Any = None,
        change: bool = False,  # noqa: FBT001, FBT002 - Django's signature
        **kwargs: Any,
    ) -> Any:
        made = super().get_form(request, obj, change, **kwargs)
        refusal = request.META.get(_REFUSAL)
        return type(made.__name__, (made,), {"refusal": refusal}) if refusal else made

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """Show a service's refusal in the form; its transaction is rolled back by then."""
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except (Problem, IntegrityError) as fault:
            request.META[_REFUSAL] = _refusal(fault)
            request.META.pop(_SECRETS, None)
            return super().changeform_view(request, object_id, form_url, extra_context)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:  # noqa: ARG002, FBT001 - Django's signature
        secrets = request.META.setdefault(_SECRETS, {})
        stored = self.store(standing_of(request), obj, form, secrets=secrets)
        obj.__dict__.update(stored.__dict__)
        self.admin_site.changed()

    def save_related(self, *_args: Any) -> None:
        """Nothing: the service stored all of it."""

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: Any = None) -> Any:
        shown = self._shown_once(request, obj)
        return shown or super().response_add(request, obj, post_url_continue)

    def response_change(self, request: HttpRequest, obj: Any) -> Any:
        return self._shown_once(request, obj) or super().response_change(request, obj)

    def _shown_once(self, request: HttpRequest, obj: Any) -> HttpResponse | None:
        """Show new secrets in the answer itself: kept for a next page, they would be at rest."""
        secrets = request.META.get(_SECRETS)
        if not secrets:
            return None
        context = {
            **self.admin_site.each_context(request),
            "title": "Shown once",
            "opts": self.opts,
            "secrets": secrets,
            "onward": self.url_of(obj),
        }
        return TemplateResponse(request, "admin/secrets.html", context)

    def url_of(self, obj: Any) -> str:
        named = f"admin:{self.opts.app_label}_{self.opts.model_name}_change"
        return reverse(named, args=(obj.pk,))

    def act(
        self,
        request: HttpRequest,
        object_id: str,
        *,
        title: str,
        says: str,
        do: Callable[[Any, Standing], Sequence[Change]],
        onward: str | None = None,
        detail: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Ask before an act (GET), and do it (POST): ``do`` calls the service."""
        row = self.found(request, object_id)
        refusal = None
        if request.method == "POST":
            try:
                with transaction.atomic():
                    changes = do(row, standing_of(request))
                    self.admin_site.changed()
            except Problem as problem:
                refusal = problem
            else:
                told = f"{title}: done." if changes else f"{title}: it was so already."
                messages.success(request, told)
                return HttpResponse(status=303, headers={"Location": onward or self.url_of(row)})
        context = {
            **self.admin_site.each_context(request),
            "title": f"{title}: {row}",
            "opts": self.opts,
            "original": row,
            "act": title,
            "says": says,
            "refusal": refusal,
            "back": self.url_of(row),
            **(detail or {}),
        }
        status = refusal.status if refusal else 200
        return TemplateResponse(request, "admin/act.html", context, status=status)
