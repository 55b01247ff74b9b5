// A store with a million rows in every table that grows: the start, and every list of the API with every filter, while /health answers.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fillStore } from '../lib/fill-store.mjs'
import { timeToFirstAnswer } from '../lib/first-answer.mjs'
import { threadsCpuMs } from '../lib/machine.mjs'
import { median } from '../lib/numbers.mjs'
import { startPlatform } from '../lib/platform.mjs'
import { payloadOf, TOPICS, writeProcedures } from '../lib/procedures.mjs'
import { newDataDir, runLoad, sluiceBundle, startSluice } from '../lib/sluice.mjs'
import { untilDone } from '../lib/until-done.mjs'
import { chatappConfig } from '../load/chatapp-requests.mjs'

const ROWS = Number(process.env.LISTS_ROWS ?? 1_000_000)
const HEALTH_EVERY_MS = 5
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

/** Resolves to the time of `work`, and the longest time of an answer of /health meanwhile. */
async function beside({ url }, work) {
  let isOver = false
  let longestMs = 0
  const watch = (async () => {
    while (!isOver) {
      const start = performance.now()
      await (await fetch(`${url}/health`)).text()
      longestMs = Math.max(longestMs, performance.now() - start)
      await sleep(HEALTH_EVERY_MS)
    }
  })()
  await sleep(2 * HEALTH_EVERY_MS)
  const start = performance.now()
  let tookMs
  try {
    await work()
  } finally {
    tookMs = performance.now() - start
    isOver = true
    await watch
  }
  return { tookMs, longestMs }
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
      healthMs: median(seen.map(({ longestMs }) => longestMs)),
    }
    times.push(one)
    if (one.tookMs > 100 || one.healthMs > 50)
      note(`${path}: ${one.tookMs.toFixed(0)} ms, of which ${one.cpuMs.toFixed(0)} ms of CPU, /health ${one.healthMs.toFixed(0)} ms`)
  }
  return times
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
    const server = { url: `http://127.0.0.1:${port}`, token, pid }
    try {
      const lists = listsOf(await request(server.url, token, '/api/openapi.json'))
      note(`lists: ${lists.length} lists`)
      const cold = await timeLists(server, lists, { tries: 1, file, note: (line) => note(`cold: ${line}`) })
      const hot = await timeLists(server, lists, { tries: TRIES, note: (line) => note(`hot: ${line}`) })
      const [cold1, hot1] = [slowest(cold, 'tookMs'), slowest(hot, 'tookMs')]
      const more = {
        'lists-hot': { ours: hot1.tookMs, detail: { slowest: hot1.path, hot, cold } },
        'lists-cold': { ours: cold1.tookMs, detail: { slowest: cold1.path } },
        'lists-health': { ours: slowest(hot, 'healthMs').healthMs, detail: { slowest: slowest(hot, 'healthMs').path } },
        'lists-cold-health': { ours: slowest(cold, 'healthMs').healthMs, detail: { slowest: slowest(cold, 'healthMs').path } },
      }
      return starts.map((round) => ({ ...round, ...more }))
    } finally {
      await stop()
    }
  } finally {
    rmSync(own, { recursive: true, force: true })
  }
}
