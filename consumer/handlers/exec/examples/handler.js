// A handler for `handler.exec` in Node: command: [node, handler.js].
const lines = require("node:readline").createInterface({ input: process.stdin });
console.log = console.error; // stdout is for replies
process.on("SIGTERM", () => lines.close());

async function charge(record) {
  if (record.value === null) {
    throw Object.assign(new Error("a null value is no payment"), { class: "no_payment", retry: false });
  }
  return { order: record.record_id, cents: record.value.amount * 100 };
}

async function reply(record) {
  try {
    return { record_id: record.record_id, value: await charge(record) };
  } catch (error) {
    console.error(error);
    const { message, class: name = "failed", retry = true } = error;
    return { record_id: record.record_id, error: message, class: name, retry };
  }
}

async function main() {
  for await (const line of lines) {
    const request = JSON.parse(line);
    const all = (request.batch ?? [request]).map(reply);
    const said = request.batch ? { batch: await Promise.all(all) } : await all[0];
    process.stdout.write(JSON.stringify(said) + "\n");
  }
}

main();
