// Posts events to several daemons alternately, one event at a time, and checks after each answer that the audit log has its run.
// `node in-turns.mjs JOB`, JOB as JSON: {targets, body, slices, events, maxSecs}, with targets {url, token, procedures, database}. Each
// event matches one procedure. Without a database, the answer must name no run. Prints {p50Ms, p99Ms} for each target as JSON.
import { DatabaseSync } from 'node:sqlite'
import { quantile } from '../lib/numbers.mjs'
import { TOPICS } from '../lib/procedures.mjs'
import { openHttpConnection } from './http-connection.mjs'

const job = JSON.parse(process.argv[2])
const deadline = performance.now() + job.maxSecs * 1000

function requestOf({ url, token, procedures }) {
  const head = [
    `POST ${TOPICS.webhook(Math.floor(Math.random() * procedures))} HTTP/1.1`,
    `Host: ${new URL(url).host}`,
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    `Content-Length: ${job.body.length}`,
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${job.body}`)
}

/** Reads the audit log over a separate connection, which sees only committed records. */
function auditOf(file) {
  const database = new DatabaseSync(file, { readOnly: true })
  const starts = database.prepare("SELECT count(*) AS count FROM sop_audit WHERE run = ? AND kind = 'run_started'")
  return (run) => starts.get(run).count
}

async function open(target) {
  const connection = await openHttpConnection(target.url)
  const startsOf = target.database && auditOf(target.database)
  const send = (request) =>
    new Promise((resolve, reject) => connection.send(request, (error, answer) => (error ? reject(error) : resolve(answer))))
  return {
    latenciesMs: [],
    close: connection.close,
    async post() {
      const request = requestOf(target)
      const sentAt = performance.now()
      const { status, body } = await send(request)
      const tookMs = performance.now() - sentAt
      const { results } = status === 200 ? JSON.parse(body) : {}
      if (results?.length !== (startsOf ? 1 : 0)) throw new Error(`answer ${status}: ${body.toString().slice(0, 200)}`)
      if (startsOf && startsOf(results[0].run_id) !== 1) throw new Error(`no record of ${JSON.stringify(results[0])}`)
      this.latenciesMs.push(tookMs)
    },
  }
}

const targets = await Promise.all(job.targets.map(open))
async function inTurns(slices) {
  for (let slice = 0; slice < slices; slice++) {
    for (const target of slice % 2 === 0 ? targets : targets.toReversed()) {
      for (let event = 0; event < job.events; event++) await target.post()
    }
    if (performance.now() > deadline) throw new Error(`only ${slice + 1} of ${slices} slices were done in ${job.maxSecs} s`)
  }
}

await inTurns(Math.ceil(job.slices / 5))
for (const target of targets) target.latenciesMs = []
await inTurns(job.slices)
for (const { close } of targets) close()
const sorted = targets.map(({ latenciesMs }) => latenciesMs.sort((a, b) => a - b))
console.log(JSON.stringify(sorted.map((times) => ({ p50Ms: quantile(times, 0.5), p99Ms: quantile(times, 0.99) }))))
