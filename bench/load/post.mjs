// Posts webhooks in a closed loop: each connection sends its next request after the answer to the previous one. `node post.mjs JOB`, JOB as JSON:
// {url, token, pid, connections, warmup, requests, maxSecs}, with `kind` "webhook" or "chatapp", `sameKey`, `isForged`, `bytes` of a body (default 1,024), the
// `status` each answer must have (default 200), the `urls` of several servers that share the connections, and for chatapp the number of
// the `first` message. Prints {perSec, p50Ms, p99Ms, cpuUs, serverCores, clientCores} as
// JSON; `cpuUs` is the CPU time of the server for one request.
import { cpuSecs, threadsCpuMs } from '../lib/machine.mjs'
import { quantile } from '../lib/numbers.mjs'
import { chatappQueues } from './chatapp-requests.mjs'
import { openHttpConnection } from './http-connection.mjs'
import { webhookQueues } from './webhook-requests.mjs'

const job = JSON.parse(process.argv[2])
const queuesOf = job.kind === 'chatapp' ? chatappQueues : webhookQueues
const urls = job.urls ?? [job.url]
const connections = await Promise.all(Array.from({ length: job.connections }, (_, at) => openHttpConnection(urls[at % urls.length])))

/** Sends the requests of one connection one after the other, until the deadline. Resolves to the latencies. */
function drain(connection, requests, deadline) {
  const latenciesMs = []
  return new Promise((resolve, reject) => {
    const next = () => {
      const sentAt = performance.now()
      if (latenciesMs.length === requests.length || sentAt > deadline) return resolve(latenciesMs)
      connection.send(requests[latenciesMs.length], (error, response) => {
        if (error) return reject(error)
        if (response.status !== (job.status ?? 200))
          return reject(new Error(`answer ${response.status}: ${response.body.toString().slice(0, 200)}`))
        latenciesMs.push(performance.now() - sentAt)
        next()
      })
    }
    next()
  })
}

async function load(queues) {
  const cpuBefore = [threadsCpuMs(job.pid), cpuSecs(process.pid)]
  const start = performance.now()
  const deadline = start + job.maxSecs * 1000
  const latenciesMs = (await Promise.all(connections.map((connection, at) => drain(connection, queues[at], deadline)))).flat()
  const secs = (performance.now() - start) / 1000
  const serverMs = threadsCpuMs(job.pid) - cpuBefore[0]
  const sorted = latenciesMs.sort((a, b) => a - b)
  return {
    perSec: sorted.length / secs,
    p50Ms: quantile(sorted, 0.5),
    p99Ms: quantile(sorted, 0.99),
    cpuUs: (serverMs * 1000) / sorted.length,
    serverCores: serverMs / 1000 / secs,
    clientCores: (cpuSecs(process.pid) - cpuBefore[1]) / secs,
  }
}

const warmup = queuesOf({ ...job, requests: job.warmup })
const measured = queuesOf(job)
await load(warmup)
const result = await load(measured)
for (const connection of connections) connection.close()
console.log(JSON.stringify(result))
