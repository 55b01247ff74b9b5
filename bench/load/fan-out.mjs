// Subscribes many clients to the events of a server and publishes events. `node fan-out.mjs JOB`, JOB as JSON:
// {kind: 'sse' | 'ws', url, publishUrl, token, pid, clients, idleSecs, warmup, pacedEvents, pacedPerSec, burstEvents, burstWindow, maxSecs}.
// Prints {kibPerClient, pacedP50Ms, pacedP99Ms, deliveriesPerSec, cpuUs, serverCores, clientCores} as JSON.
import { setTimeout as sleep } from 'node:timers/promises'
import { cpuSecs, residentMiB, threadsCpuMs } from '../lib/machine.mjs'
import { quantile } from '../lib/numbers.mjs'
import { subscribe } from './event-stream.mjs'
import { openPublisher } from './publisher.mjs'

const CONNECTING_AT_ONCE = 50
const job = JSON.parse(process.argv[2])
const { promise: broken, reject: fail } = Promise.withResolvers()

/** The time at which each event was sent, and the number of clients that received it, by the number of the event. */
const sentAt = []
const receivedBy = []
let latenciesMs = []
let onReceivedByAll = () => {}

function publish() {
  const number = sentAt.length
  receivedBy.push(0)
  sentAt.push(performance.now())
  publisher.post(number)
}

function onEvent(number) {
  latenciesMs.push(performance.now() - sentAt[number])
  receivedBy[number] += 1
  if (receivedBy[number] === job.clients) onReceivedByAll()
}

async function subscribeMany(clients) {
  const { kind, url, token } = job
  const leave = []
  while (leave.length < clients) {
    const count = Math.min(CONNECTING_AT_ONCE, clients - leave.length)
    leave.push(...(await Promise.all(Array.from({ length: count }, () => subscribe({ kind, url, token, onEvent, onEnd: fail })))))
  }
  return leave
}

/** Calls `start` to publish, and `again` after each event that reached every client. Resolves to the sorted latencies once every client has every event. */
async function deliver(events, { start, again }) {
  latenciesMs = []
  let complete = 0
  const { promise: all, resolve } = Promise.withResolvers()
  onReceivedByAll = () => {
    complete += 1
    again?.()
    if (complete === events) resolve()
  }
  start()
  const overtime = new AbortController()
  const late = sleep(job.maxSecs * 1000, undefined, { signal: overtime.signal }).then(() => {
    throw new Error(`only ${complete} of ${events} events reached every client in ${job.maxSecs} s`)
  })
  await Promise.race([all, late, broken])
  overtime.abort()
  return latenciesMs.sort((a, b) => a - b)
}

/** Keeps a few events in flight: publishes the next event after each event that reached every client. */
function deliverBurst(events) {
  let left = events
  const again = () => {
    if (left === 0) return
    left -= 1
    publish()
  }
  return deliver(events, { again, start: () => Array.from({ length: job.burstWindow }).forEach(again) })
}

function deliverPaced(events) {
  let left = events
  const start = () => {
    const timer = setInterval(() => {
      publish()
      left -= 1
      if (left === 0) clearInterval(timer)
    }, 1000 / job.pacedPerSec)
  }
  return deliver(events, { start })
}

// The first client makes the server load code for all of them, so it is not part of the memory of a client.
const leave = await subscribeMany(1)
await sleep(job.idleSecs * 1000)
const emptyMiB = residentMiB(job.pid)
leave.push(...(await subscribeMany(job.clients - 1)))
await sleep(job.idleSecs * 1000)
const kibPerClient = ((residentMiB(job.pid) - emptyMiB) * 1024) / (job.clients - 1)

// Opened only now: a server closes a connection that sends no request for some seconds.
const publisher = await openPublisher({ url: job.publishUrl, connections: job.burstWindow, onError: fail })
await deliverBurst(job.warmup)
const paced = await deliverPaced(job.pacedEvents)

const cpuBefore = [threadsCpuMs(job.pid), cpuSecs(process.pid)]
const start = performance.now()
await deliverBurst(job.burstEvents)
const secs = (performance.now() - start) / 1000
const serverMs = threadsCpuMs(job.pid) - cpuBefore[0]
const result = {
  kibPerClient,
  pacedP50Ms: quantile(paced, 0.5),
  pacedP99Ms: quantile(paced, 0.99),
  deliveriesPerSec: (job.burstEvents * job.clients) / secs,
  cpuUs: (serverMs * 1000) / (job.burstEvents * job.clients),
  serverCores: serverMs / 1000 / secs,
  clientCores: (cpuSecs(process.pid) - cpuBefore[1]) / secs,
}
for (const end of leave) end()
publisher.close()
console.log(JSON.stringify(result))
