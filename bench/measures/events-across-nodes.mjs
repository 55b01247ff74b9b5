// Events of one node of a cluster for the subscribers of another one: their latency from `emit` to the subscriber, and the processor time.
// Run it alone: node bench/measures/events-across-nodes.mjs [events a second] [seconds]
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../../packages/kit/src/index.ts'
import { createEventBus } from '../../packages/runtime/src/events/event-bus.ts'
import { openPostgresStore } from '../../packages/store-postgres/src/open-store.ts'
import { startPostgres } from '../../packages/store-postgres/src/testing/postgres-server.ts'

const ROLES = ['ingress', 'worker', 'channels']
const now = () => performance.timeOrigin + performance.now()

async function openNode(url, node) {
  const store = await openPostgresStore({ url, node, cluster: { name: 'bench', node, roles: ROLES, url: null, version: '0' } })
  const bus = createEventBus({ clock: systemClock, run: 'bench', shared: store.cluster.events })
  await bus.start()
  return { store, bus }
}

/** The other node: keeps the latency of each event until it is asked for the result. */
async function follow(url) {
  const { store, bus } = await openNode(url, 'subscriber')
  const latenciesMs = []
  let gaps = 0
  bus.subscribe(
    ({ envelope }) => latenciesMs.push(now() - envelope.at),
    () => gaps++,
  )
  process.send('ready')
  const before = process.cpuUsage()
  process.once('message', async () => {
    const { user, system } = process.cpuUsage(before)
    process.send({ latenciesMs, gaps, cpuUs: user + system })
    await store.close()
    process.disconnect()
  })
}

async function measure(perSecond, seconds) {
  const server = await startPostgres()
  const child = fork(import.meta.filename, ['follow', server.url], { execArgv: process.execArgv })
  await once(child, 'message')
  const { store, bus } = await openNode(server.url, 'emitter')
  const before = process.cpuUsage()
  const startedMs = now()
  const count = perSecond * seconds
  for (let event = 0; event < count; event++) {
    const waitMs = startedMs + (event * 1000) / perSecond - now()
    if (waitMs > 0) await sleep(waitMs)
    bus.emit({ type: 'x_tick', at: now(), text: 'x'.repeat(300) })
  }
  await sleep(2000)
  const { user, system } = process.cpuUsage(before)
  child.send('result')
  const [{ latenciesMs, gaps, cpuUs }] = await once(child, 'message')
  await store.close()
  await server.stop()
  const sorted = latenciesMs.toSorted((a, b) => a - b)
  const at = (part) => Number(sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))]?.toFixed(2))
  return {
    events: count,
    received: sorted.length,
    gaps,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    maxMs: at(1),
    emitterCpuUsPerEvent: Math.round((user + system) / count),
    subscriberCpuUsPerEvent: Math.round(cpuUs / count),
  }
}

const [first = '200', second = '15'] = process.argv.slice(2)
if (first === 'follow') await follow(second)
else process.stdout.write(`${JSON.stringify(await measure(Number(first), Number(second)), null, 2)}\n`)
