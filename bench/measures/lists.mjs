// A store with a million rows in every table that grows: the start, and every list of the API with every filter, while /health answers.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fillStore } from '../lib/fill-store.mjs'
import { timeToFirstAnswer } from '../lib/first-answer.mjs'
import { watchHealth } from '../lib/health-watch.mjs'
import { endedChildrenCpuMs, threadsCpuMs } from '../lib/machine.mjs'
import { median } from '../lib/numbers.mjs'
import { startPlatform } from '../lib/platform.mjs'
import { payloadOf, TOPICS, writeProcedures } from '../lib/procedures.mjs'
import { timeToExit } from '../lib/processes.mjs'
import { newDataDir, runLoad, sluiceBundle, startSluice } from '../lib/sluice.mjs'
import { untilDone } from '../lib/until-done.mjs'
import { chatappConfig } from '../load/chatapp-requests.mjs'

const ROWS = Number(process.env.LISTS_ROWS ?? 1_000_000)
/** The time before a list is asked for, in which the watch of /health asks at least once. */
const WATCHED_BEFORE_MS = 10
const TRIES = 5

const config = (apiUrl, procedures) => `[gateway]
webhook_rate_limit_per_minute = 0

[provider]
kind = "offline"

[sop]
sops_dir = "${procedures}"
max_finished_runs = 0

[delivery]
retention_mb = 1000000
retention_days = 3650

[log]
level = "warn"

${chatappConfig({ apiUrl })}`

const argsFor = (dataDir) => (port) => [sluiceBundle('minimal'), 'daemon', '--data-dir', dataDir, '--port', String(port)]

/** Sends one request; resolves to its body as JSON. */
async function request(url, token, path, { method = 'GET', body } = {}) {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path} was answered ${response.status}: ${text.slice(0, 200)}`)
  return text === '' ? undefined : JSON.parse(text)
}

/** Lets a daemon write the first row of each table. */
async function writeSamples(own, dataDir, text) {
  const platform = await startPlatform()
  const server = await startSluice({ scratch: own, dataDir, config: text(platform.url) })
  try {
    const job = { url: server.url, pid: server.pid, connections: 1, warmup: 0, kind: 'chatapp', maxSecs: 30, requests: 1, bytes: 512 }
    await runLoad({ scratch: own, name: 'post', job })
    await request(server.url, server.token, TOPICS.webhook(0), { method: 'POST', body: payloadOf() })
    const remember = {
      message: '/tool memory_store {"key": "greeting", "content": "The press of hall 7 stands still on Mondays", "category": "core"}',
    }
    await request(server.url, server.token, '/webhook', { method: 'POST', body: JSON.stringify(remember) })
    await untilDone(server)
  } finally {
    await server.stop()
    platform.close()
  }
  return server.token
}

/** Drops the pages of a file from memory, so that they are read from the disk again. */
const forget = (file) => spawnSync('dd', [`of=${file}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0'])

const MEMBERS = {
  channel: ['chatapp', 'roomchat', 'telegram'],
  sender: ['15550000001', 'person-1', 'nobody'],
  sop: ['machine-0', 'unknown'],
  run: ['run-0500000', 'unknown'],
  to: ['1555', 'nobody'],
  text: ['e', 'words that nobody wrote'],
  owner: ['channel:chatapp/200000000000002/15550000007', 'device:nobody'],
  all: ['true'],
  active: ['true', 'false'],
  session: ['channel:chatapp/200000000000002/15550000007', 'unknown'],
  agent: ['main', 'unknown'],
}

/** Returns every list of the OpenAPI document with no filter, each filter, and each pair of filters, with values of many, few and no rows. */
function listsOf({ paths }) {
  const found = []
  for (const [path, { get }] of Object.entries(paths)) {
    const parameters = (get?.parameters ?? []).filter((parameter) => parameter.in === 'query')
    if (path.includes('{') || !parameters.some(({ name }) => name === 'limit')) continue
    const valuesOf = ({ name, schema }) => schema?.enum ?? schema?.items?.enum ?? MEMBERS[name] ?? []
    const filters = parameters.filter(({ name }) => !['limit', 'before', 'after', 'cursor'].includes(name))
    const query = (pairs) => found.push(`${path}${pairs.length > 0 ? `?${new URLSearchParams(pairs)}` : ''}`)
    query([])
    for (const [at, filter] of filters.entries()) {
      const first = valuesOf(filter).map((value) => [filter.name, value])
      if (filter.name !== 'sender') for (const one of first) query([one])
      for (const other of filters.slice(at + 1)) {
        if (other.name === 'sender' && filter.name !== 'channel') continue
        for (const one of first) for (const value of valuesOf(other)) query([one, [other.name, value]])
      }
    }
  }
  return [...found, '/api/costs', '/api/costs?by=hour']
}

/** Resolves to the time of `work`, and to the longest waits of /health meanwhile. */
async function beside({ watch }, work) {
  let tookMs = 0
  const seen = await watch.during(async () => {
    await sleep(WATCHED_BEFORE_MS)
    const start = performance.now()
    await work()
    tookMs = performance.now() - start
  })
  return { tookMs, ...seen }
}

/** Follows the second page of a list, too. */
async function pages(url, token, path) {
  const { next } = await request(url, token, path)
  if (next === null || next === undefined) return
  const name = /deliveries|audit/.test(path)
    ? path.includes('audit')
      ? 'after'
      : 'before'
    : path.includes('sops/runs')
      ? 'before'
      : 'cursor'
  await request(url, token, `${path}${path.includes('?') ? '&' : '?'}${name}=${encodeURIComponent(next)}`)
}

async function timeLists(server, lists, { tries, file, note }) {
  const times = []
  for (const path of lists) {
    const seen = []
    for (let round = 0; round < tries; round++) {
      if (file) forget(file)
      const cpuBefore = threadsCpuMs(server.pid)
      const one = await beside(server, () => pages(server.url, server.token, path))
      seen.push({ ...one, cpuMs: threadsCpuMs(server.pid) - cpuBefore })
    }
    const one = {
      path,
      cpuMs: median(seen.map(({ cpuMs }) => cpuMs)),
      tookMs: median(seen.map(({ tookMs }) => tookMs)),
      healthMs: median(seen.map(({ healthMs }) => healthMs)),
      healthOwnMs: median(seen.map(({ ownMs }) => ownMs)),
    }
    times.push(one)
    if (one.tookMs > 100 || one.healthOwnMs > 50) {
      const health = `/health ${one.healthMs.toFixed(0)} ms, of which ${one.healthOwnMs.toFixed(0)} ms without waits for a processor`
      note(`${path}: ${one.tookMs.toFixed(0)} ms, of which ${one.cpuMs.toFixed(0)} ms of CPU; ${health}`)
    }
  }
  return times
}

/**
 * The lists of the command line with their filters. `sop audit` is not among them: it checks every record, and copied records are not
 * valid. Neither are searches without finds: they go on for ten seconds, in pages that the lists of the API measure.
 */
const COMMANDS = [
  'inbox list',
  ...['done', 'dead', 'pending,running'].map((state) => `inbox list --state ${state}`),
  ...['chatapp', 'roomchat', 'telegram'].map((channel) => `inbox list --channel ${channel}`),
  'inbox list --sender 1555',
  'inbox list --before 500000',
  'inbox dead',
  'outbox list',
  ...['sent', 'dead', 'queued,sending'].map((state) => `outbox list --state ${state}`),
  ...['chatapp', 'roomchat', 'telegram'].map((channel) => `outbox list --channel ${channel}`),
  'outbox list --to 1555',
  'outbox dead',
  'sessions list',
  ...['chatapp', 'roomchat', 'telegram'].map((channel) => `sessions list --channel ${channel}`),
  'sessions list --channel chatapp --sender 15550000001',
  'approvals list',
  ...['pending', 'approved', 'rejected'].map((state) => `approvals list --state ${state}`),
  'sop list',
  'sop waiting',
  'sop runs',
  'sop runs --active',
  'sop runs --sop machine-0',
  'sop runs --before run-0500000',
  'memory list --limit 50',
  'memory list --owner channel:chatapp/200000000000002/15550000007',
  'limits list',
  'pair list',
]

/** Compares each command at the full store with the same command at an empty store: the difference is the list, without the start. */
async function timeCommands({ scratch, emptyDir, fullDir, pid, note }) {
  const { pid: emptyPid, stop } = await timeToFirstAnswer({ scratch, argsFor: argsFor(emptyDir) })
  const took = (words, dataDir, daemon) => {
    const before = threadsCpuMs(daemon) + endedChildrenCpuMs()
    const tookMs = timeToExit({ scratch, args: [sluiceBundle('minimal'), ...words.split(' '), '--data-dir', dataDir] })
    return { tookMs, cpuMs: threadsCpuMs(daemon) + endedChildrenCpuMs() - before }
  }
  try {
    return COMMANDS.map((words) => {
      const seen = Array.from({ length: TRIES }, () => ({ full: took(words, fullDir, pid), empty: took(words, emptyDir, emptyPid) }))
      const beyond = (key) => median(seen.map(({ full, empty }) => full[key] - empty[key]))
      const one = { words, beyondMs: beyond('tookMs'), beyondCpuMs: beyond('cpuMs') }
      if (one.beyondMs > 100)
        note(`sluice ${words}: ${one.beyondMs.toFixed(0)} ms more than with an empty store, of CPU ${one.beyondCpuMs.toFixed(0)} ms`)
      return one
    })
  } finally {
    await stop()
  }
}

const slowest = (times, key) => times.reduce((worst, one) => (one[key] > worst[key] ? one : worst))

/** The lists are measured once, since a round cannot fill the store again. */
export async function measureLists({ scratch, rounds, scale, note }) {
  const own = mkdtempSync(join(scratch, 'lists-'))
  const procedures = writeProcedures(join(own, 'procedures'), 1)
  const text = (apiUrl) => config(apiUrl, procedures)
  const [emptyDir, fullDir] = [newDataDir(own), newDataDir(own)]
  try {
    await writeSamples(own, emptyDir, text)
    const token = await writeSamples(own, fullDir, text)
    const file = join(fullDir, 'sluice.db')
    const secs = fillStore(file, scale(ROWS))
    note(`lists: the store was filled in ${secs.toFixed(0)} s`)
    const startOf = async (dataDir) => {
      const { tookMs, stop } = await timeToFirstAnswer({ scratch: own, argsFor: argsFor(dataDir) })
      await stop()
      return tookMs
    }
    for (const dataDir of [emptyDir, fullDir]) await startOf(dataDir)
    const starts = await rounds({ full: 9, quick: 3 }, async () => ({
      'lists-start': { bare: await startOf(emptyDir), ours: await startOf(fullDir) },
    }))
    forget(file)
    const { port, pid, stop } = await timeToFirstAnswer({ scratch: own, argsFor: argsFor(fullDir) })
    const watch = await watchHealth({ port, pid })
    const server = { url: `http://127.0.0.1:${port}`, token, pid, watch }
    try {
      const lists = listsOf(await request(server.url, token, '/api/openapi.json'))
      note(`lists: ${lists.length} lists`)
      const cold = await timeLists(server, lists, { tries: 1, file, note: (line) => note(`cold: ${line}`) })
      const hot = await timeLists(server, lists, { tries: TRIES, note: (line) => note(`hot: ${line}`) })
      await watch.stop()
      const commands = await timeCommands({ scratch: own, emptyDir, fullDir, pid, note })
      const [cold1, hot1] = [slowest(cold, 'tookMs'), slowest(hot, 'tookMs')]
      const [hotHealth, coldHealth, command] = [slowest(hot, 'healthOwnMs'), slowest(cold, 'healthOwnMs'), slowest(commands, 'beyondCpuMs')]
      const more = {
        'lists-hot': { ours: hot1.tookMs, detail: { slowest: hot1.path, hot, cold } },
        'lists-hot-cpu': { ours: slowest(hot, 'cpuMs').cpuMs, detail: { slowest: slowest(hot, 'cpuMs').path } },
        'lists-cold': { ours: cold1.tookMs, detail: { slowest: cold1.path } },
        'lists-health': { ours: hotHealth.healthOwnMs, detail: { slowest: hotHealth.path } },
        'lists-cold-health': { ours: coldHealth.healthOwnMs, detail: { slowest: coldHealth.path } },
        'lists-commands': { ours: command.beyondCpuMs, detail: { slowest: command.words, commands } },
      }
      return starts.map((round) => ({ ...round, ...more }))
    } finally {
      await watch.stop()
      await stop()
    }
  } finally {
    rmSync(own, { recursive: true, force: true })
  }
}
