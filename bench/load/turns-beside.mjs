// Posts webhooks to several daemons in slices, one daemon after the other, so that other load on the machine affects all of them.
// `node turns-beside.mjs JOB`, JOB as JSON: {targets, connections, slices, requests, maxSecs}, with targets {url, token, pid}; `requests`
// is the number in one slice. The first fifth of the slices is not measured. Prints {perSec, p50Ms, cpuMs} for each target as JSON;
// `cpuMs` is the CPU time of the daemon for one turn.
import { cpuSecs } from '../lib/machine.mjs'
import { quantile } from '../lib/numbers.mjs'
import { openHttpConnection } from './http-connection.mjs'
import { webhookQueues } from './webhook-requests.mjs'

const job = JSON.parse(process.argv[2])
const deadline = performance.now() + job.maxSecs * 1000
const warmup = Math.ceil(job.slices / 5)

const post = (connection, request) =>
  new Promise((resolve, reject) => {
    connection.send(request, (error, { status } = {}) => {
      if (error || status !== 200) reject(error ?? new Error(`answer ${status}`))
      else resolve()
    })
  })

async function open({ url, token, pid }) {
  const connections = await Promise.all(Array.from({ length: job.connections }, () => openHttpConnection(url)))
  const perConnection = Math.ceil(job.requests / job.connections)
  const slices = warmup + job.slices
  const queues = webhookQueues({ url, token, connections: job.connections, requests: perConnection * job.connections * slices })
  const measured = { secs: 0, latenciesMs: [], cpuSecs: 0 }
  return {
    measured,
    pid,
    close() {
      for (const connection of connections) connection.close()
    },
    async slice(number) {
      const startedAt = performance.now()
      const drain = async (connection, at) => {
        for (const request of queues[at].slice(number * perConnection, (number + 1) * perConnection)) {
          const sentAt = performance.now()
          await post(connection, request)
          if (number >= warmup) measured.latenciesMs.push(performance.now() - sentAt)
        }
      }
      await Promise.all(connections.map(drain))
      if (number >= warmup) measured.secs += (performance.now() - startedAt) / 1000
    },
  }
}

const targets = await Promise.all(job.targets.map(open))
const cpuBefore = []
for (let slice = 0; slice < warmup + job.slices; slice++) {
  if (slice === warmup) for (const { pid } of targets) cpuBefore.push(cpuSecs(pid))
  // The first target changes from slice to slice, because the order may affect the results.
  for (let turn = 0; turn < targets.length; turn++) await targets[(slice + turn) % targets.length].slice(slice)
  if (performance.now() > deadline) throw new Error(`only ${slice + 1} slices were done in ${job.maxSecs} s`)
}
const results = targets.map(({ measured: { secs, latenciesMs }, pid }, at) => ({
  perSec: latenciesMs.length / secs,
  p50Ms: quantile(
    latenciesMs.toSorted((a, b) => a - b),
    0.5,
  ),
  cpuMs: ((cpuSecs(pid) - cpuBefore[at]) * 1000) / latenciesMs.length,
}))
for (const target of targets) target.close()
console.log(JSON.stringify(results))
