/**
 * Runs several accounts of a channel as a daemon does, without the rest of a daemon, and prints the memory of the process before and after
 * as JSON. Its arguments are the id of the channel and the sections of the accounts; Node runs it with `--expose-gc`.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { systemClock } from '@sluice/kit'
import type { Feature, Host } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { startListening } from '@sluice/testkit/listening'
import * as v from 'valibot'

const CONNECT_MS_MAX = 300_000
const IDLE_MS = 5000
const POLL_MS = 50

const [id = '', text = '[]'] = process.argv.slice(2)
const sections = JSON.parse(text) as readonly object[]
const file = join(import.meta.dirname, '../../../packages', id, 'src/index.ts')
const { default: feature } = (await import(pathToFileURL(file).href)) as { readonly default: Feature }

const silent = { debug() {}, info() {}, warn() {}, error() {} }
const hosts = sections.map((): Host => ({ ...testHost({ fetch }), clock: systemClock, log: silent }))
const memory = async () => {
  for (let pass = 0; pass < 3; pass++) {
    await sleep(IDLE_MS / 10)
    globalThis.gc?.()
  }
  const { rss, heapUsed, external } = process.memoryUsage()
  return { rss, used: heapUsed + external }
}

const before = await memory()
const channels = await Promise.all(
  sections.map(async (section, index) => {
    const { schema, refine } = feature.section ?? { schema: v.any() }
    const parsed = v.parse(schema, section)
    const value = refine ? (await refine.call(feature.section, parsed)).value : parsed
    const [channel] = feature.build(hosts[index] as Host, value as never).channels ?? []
    if (!channel) throw new Error(`The section of the fake of ${id} builds no channel.`)
    return { channel, host: hosts[index] as Host }
  }),
)
const listening = channels.flatMap(({ channel, host }) =>
  channel.listen ? [startListening(channel, host as never, async () => undefined)] : [],
)
for (const endMs = performance.now() + CONNECT_MS_MAX; !listening.every(({ health }) => health.state === 'ok'); await sleep(POLL_MS)) {
  const failed = listening.find(({ health }) => health.state !== 'ok')
  if (performance.now() > endMs) throw new Error(`An account of ${id} did not connect: ${failed?.health.detail}`)
}
await sleep(IDLE_MS)
console.log(JSON.stringify({ before, after: await memory(), listens: listening.length > 0 }))
process.exit()
