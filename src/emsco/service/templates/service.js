/* What the pages of the service share: the models, requests, problems. */

const data = JSON.parse(byId("data").textContent);

/** Ask the service; a problem is an error that says what the service said. */
async function ask(path, body) {
  const init = body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  let response;
  try {
    response = await fetch(path, { ...init, cache: "no-store" });
  } catch {
    throw Object.assign(new Error("The service does not answer. Is it running?"), { status: 0 });
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const detail = answer.detail || `The service answered with status ${response.status}.`;
  throw Object.assign(new Error(detail[0].toUpperCase() + detail.slice(1)), { status: response.status });
}

function showProblem(message) {
  byId("problem").hidden = !message;
  byId("problem").textContent = message || "";
}

const path = (name, rest) => `/models/${encodeURIComponent(name)}${rest || ""}`;

/** The model in the address, or the first one. */
function chosenModel() {
  const asked = new URLSearchParams(location.search).get("model");
  return data.models.includes(asked) ? asked : data.models[0];
}

function startModels(change) {
  const select = byId("model");
  select.append(...data.models.map((name) => h("option", { value: name }, name)));
  select.value = chosenModel();
  byId("models").hidden = data.models.length < 2;
  const keep = () => {
    history.replaceState(null, "", `?model=${encodeURIComponent(select.value)}`);
    for (const link of document.querySelectorAll("nav.places a")) {
      link.search = `?model=${encodeURIComponent(select.value)}`;
    }
  };
  select.addEventListener("change", () => {
    keep();
    change(select.value);
  });
  if (data.models.length) keep();
}
