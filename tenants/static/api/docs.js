"use strict";

const page = document.getElementById("docs");

SwaggerUIBundle({
  domNode: page,
  url: page.dataset.schema,
  deepLinking: true,
  docExpansion: "list",
  persistAuthorization: false,
  validatorUrl: null,
});
