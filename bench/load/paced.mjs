// Posts signed chatapp messages at a steady rate, which does not depend on the answers. `node paced.mjs JOB`, JOB as JSON:
// {url, connections, perSec, secs, first}, where `first` is the number of the first message (default 0). Prints {sent, failed, p50Ms, p99Ms} as JSON; a latency begins when its request is due.
import { quantile } from '../lib/numbers.mjs'
import { chatappRequest } from './chatapp-requests.mjs'
import { openHttpConnection } from './http-connection.mjs'

const TICK_MS = 2
/** On a machine that is busy with other work, requests are sent late, but all of them are sent. */
const LATE_SECS_MAX = 60
const job = JSON.parse(process.argv[2])
const idle = await Promise.all(Array.from({ length: job.connections }, () => openHttpConnection(job.url)))
const all = [...idle]
const requests = Array.from({ length: job.perSec * job.secs }, (_, number) =>
  chatappRequest({ url: job.url, number: number + (job.first ?? 0) }),
)
const latenciesMs = []
const due = []
let failed = 0

const send = () => {
  while (due.length > 0 && idle.length > 0) {
    const { request, atMs } = due.shift()
    const connection = idle.pop()
    connection.send(request, (error, response) => {
      if (error || response.status !== 200) failed += 1
      latenciesMs.push(performance.now() - atMs)
      if (!error) idle.push(connection)
      send()
    })
  }
}

const start = performance.now()
await new Promise((resolve) => {
  let next = 0
  const timer = setInterval(() => {
    for (; next < requests.length && start + (next * 1000) / job.perSec <= performance.now(); next++) {
      due.push({ request: requests[next], atMs: start + (next * 1000) / job.perSec })
    }
    send()
    const isLate = performance.now() - start > (job.secs + LATE_SECS_MAX) * 1000
    if (latenciesMs.length === requests.length || isLate) {
      clearInterval(timer)
      resolve()
    }
  }, TICK_MS)
})
for (const connection of all) connection.close()
const sorted = latenciesMs.sort((a, b) => a - b)
const missing = requests.length - sorted.length
console.log(
  JSON.stringify({ sent: requests.length, failed: failed + missing, p50Ms: quantile(sorted, 0.5), p99Ms: quantile(sorted, 0.99) }),
)
