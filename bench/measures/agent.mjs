// Measures the cost of an agent's tasks: a scripted model records every request. With --peers, pi and OpenClaw do the same tasks.
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { installPeers } from '../lib/installed-peers.mjs'
import { cpuOfTurns, startAgent, writeFiles } from '../lib/scripted-agent.mjs'
import { startScriptedModel } from '../servers/scripted-agent-model.mjs'

const TOKENS = { 'gpt-tokenizer': '4.0.0' }
const PEERS = { '@earendil-works/pi-coding-agent': '1.6.0', openclaw: '2026.9.6' }
const PEER_MS_MAX = 600_000
/** A message of each task, and the number of times that it is written in one conversation. */
const TASKS = { short: 3, edit: 1, huge: 1, steps: 1 }

/** What providers bill: a cached token costs a tenth, and any other a quarter more. A shorter beginning than this is not cached. */
const CACHED_PRICE = 0.1
const OTHER_PRICE = 1.25
const CACHED_CHARS_MIN = 4000

/** Returns the requests, the tokens and the price of a task, and the smallest part of a request that the next one repeats. */
function costOf(requests, tokensOf) {
  let before
  const cost = { requests: 0, tokens: 0, billed: 0, kept: 1 }
  // Programs also ask for titles and the like, without tools.
  for (const { tools = [], messages } of requests.filter((request) => request.tools?.length > 0)) {
    const text = [JSON.stringify(tools), ...messages.map((message) => JSON.stringify(message))].join('\n')
    let shared = 0
    while (before && shared < before.length && before[shared] === text[shared]) shared++
    if (before) cost.kept = Math.min(cost.kept, shared / before.length)
    const cached = shared < CACHED_CHARS_MIN ? 0 : tokensOf(text.slice(0, shared))
    const all = tokensOf(text)
    cost.requests++
    cost.tokens += all
    cost.billed += cached * CACHED_PRICE + (all - cached) * OTHER_PRICE
    before = text
  }
  return cost
}

/** Runs all tasks; `say` resolves once the message of a task is answered. */
async function runTasks(program, model, tokensOf, say) {
  const costs = {}
  for (const [task, times] of Object.entries(TASKS)) {
    model.clear(program)
    for (let at = 0; at < times; at++) await say(task, `[task: ${task}] go on, ${at}`)
    costs[task] = costOf(model.requests(), tokensOf)
  }
  return costs
}

async function ofSluice({ scratch, model, tokensOf }) {
  const { server, say } = await startAgent({ scratch, model, profile: 'full' })
  try {
    const costs = await runTasks('sluice', model, tokensOf, say)
    return { ...costs, cpuUs: await cpuOfTurns({ server, say, turns: 200 }) }
  } finally {
    await server.stop()
  }
}

/** Runs a program of a peer once for each message. */
async function ofPeer(program, { scratch, model, tokensOf, folder }) {
  const home = mkdtempSync(join(scratch, `${program}-`))
  const workspace = join(home, 'workspace')
  writeFiles(workspace)
  const start = DRIVERS[program]({ home, workspace, folder, url: model.url })
  const say = async (session, message) => {
    const { args, env } = start(session, message)
    const options = { cwd: workspace, env: { PATH: process.env.PATH, HOME: home, ...env }, timeout: PEER_MS_MAX, stdio: 'pipe' }
    const { status, stderr } = await spawned(process.execPath, args, options)
    if (status !== 0) throw new Error(`${program} ended with ${status}: ${stderr.slice(-500)}`)
  }
  return runTasks(program, model, tokensOf, say)
}

/** The model runs in this process, so the peer must not block it. */
function spawned(file, args, options) {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, options)
    let stderr = ''
    child.stdin.end()
    child.stdout.resume()
    child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text))
    child.on('error', reject)
    child.on('close', (status) => resolve({ status, stderr }))
  })
}

const DRIVERS = {
  pi({ home, folder, url }) {
    const models = [{ id: 'scripted', contextWindow: 200_000 }]
    mkdirSync(join(home, '.pi/agent'), { recursive: true })
    const providers = { bench: { baseUrl: url, apiKey: 'k', api: 'openai-completions', models } }
    writeFileSync(join(home, '.pi/agent/models.json'), JSON.stringify({ providers }))
    const program = join(folder, 'node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js')
    return (session, message) => ({
      args: [program, '--offline', '--print', '--session-id', session, '--provider', 'bench', '--model', 'scripted', message],
    })
  },
  openclaw({ home, workspace, folder, url }) {
    const models = [{ id: 'scripted', name: 'scripted', contextWindow: 200_000, maxTokens: 8192 }]
    const providers = { bench: { baseUrl: url, apiKey: 'k', api: 'openai-completions', models } }
    mkdirSync(join(home, '.openclaw'), { recursive: true })
    const config = { models: { mode: 'replace', providers }, agents: { defaults: { model: { primary: 'bench/scripted' }, workspace } } }
    writeFileSync(join(home, '.openclaw/openclaw.json'), JSON.stringify(config))
    const program = join(folder, 'node_modules/openclaw/openclaw.mjs')
    return (session, message) => ({
      args: [program, 'agent', '--local', '--agent', 'main', '--session-id', session, '--message', message, '--json'],
      env: { OPENCLAW_HOME: home },
    })
  },
}

/** Counts the shell blocks of the skills of OpenClaw, and how many of them `shell` takes in the mode `script` within a sandbox. */
async function shellBlocks(folder) {
  const { checkScript } = await import(pathToFileURL(join(import.meta.dirname, '../../packages/tool-shell/src/check-script.ts')).href)
  const policy = { forbidden_paths: ['/etc', '/root', '~/.ssh'], shell: 'script', level: 'supervised' }
  const by = { agent: 'main', policy, workspace: { root: '/srv/sluice/workspace' } }
  const skills = join(folder, 'node_modules/openclaw/skills')
  const counts = { all: 0, taken: 0 }
  for (const skill of readdirSync(skills, { withFileTypes: true }).filter((entry) => entry.isDirectory())) {
    const text = readFileSync(join(skills, skill.name, 'SKILL.md'), 'utf8')
    for (const [, block] of text.matchAll(/```(?:bash|sh|shell)\n([\s\S]*?)```/g)) {
      counts.all++
      try {
        checkScript(block, by, { confines: true, shown: [] })
        counts.taken++
      } catch {
        // The row shows that a block is refused.
      }
    }
  }
  return counts
}

export async function measureAgent({ scratch, rounds, peers, note }) {
  const { encode } = createRequire(join(installPeers('agent-tokens', TOKENS), 'package.json'))('gpt-tokenizer/encoding/o200k_base')
  const tokensOf = (text) => encode(text, { allowedSpecial: 'all' }).length
  const folder = peers ? installPeers('agent-peers', PEERS) : undefined
  return rounds({ full: 1, quick: 1 }, async () => {
    const own = mkdtempSync(join(scratch, 'agent-'))
    const model = await startScriptedModel()
    try {
      const { cpuUs, ...ours } = await ofSluice({ scratch: own, model, tokensOf })
      const round = {
        'agent-prefix': { ours: Math.min(...Object.values(ours).map(({ kept }) => kept)) * 100 },
        'agent-cpu': { ours: cpuUs / 1000 },
        ...rowsOf('', ours),
      }
      if (folder === undefined) return round
      for (const peer of ['pi', 'openclaw']) {
        note(`agent: ${peer} does the same tasks`)
        Object.assign(round, rowsOf(`-${peer}`, ours, await ofPeer(peer, { scratch: own, model, tokensOf, folder })))
      }
      const { all, taken } = await shellBlocks(folder)
      return { ...round, 'agent-shell-blocks': { ours: taken, bare: all } }
    } finally {
      model.close()
      rmSync(own, { recursive: true, force: true, maxRetries: 5 })
    }
  })
}

/** The short messages are compared by all their tokens, and the other tasks by their price. */
const rowsOf = (suffix, ours, theirs) =>
  Object.fromEntries(
    Object.entries(ours).map(([task, cost]) => {
      const value = task === 'short' ? 'tokens' : 'billed'
      const detail = { ours: cost, ...(theirs && { theirs: theirs[task] }) }
      return [`agent-${task}${suffix}`, { ours: cost[value], ...(theirs && { bare: theirs[task][value] }), detail }]
    }),
  )
