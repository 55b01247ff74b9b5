// A daemon whose model is scripted, with the files of the tasks of an agent.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { threadsCpuMs } from './machine.mjs'
import { newDataDir, startSluice } from './sluice.mjs'

const CONVERSATIONS = 20

export function writeFiles(workspace) {
  mkdirSync(workspace, { recursive: true })
  const lines = (count, line) => `${Array.from({ length: count }, (_, at) => line(at)).join('\n')}\n`
  writeFileSync(join(workspace, 'notes.md'), '# Plan\n\n- freeze on Friday\n- ship on Monday\n')
  writeFileSync(
    join(workspace, 'big.log'),
    lines(12_000, (at) => `2026-11-29T10:00:00Z ${at % 997 === 0 ? 'ERROR' : 'INFO'} worker ${at} did its job`),
  )
  writeFileSync(
    join(workspace, 'numbers.txt'),
    lines(60_000, (at) => at + 1),
  )
  writeFileSync(join(workspace, 'oneline.json'), JSON.stringify({ values: Array.from({ length: 90_000 }, (_, at) => at) }))
}

/** Starts the daemon of a profile, or of another `bundle`. `say` resolves once a message of a conversation is answered. */
export async function startAgent({ scratch, model, ...build }) {
  const dataDir = newDataDir(scratch)
  writeFiles(join(dataDir, 'workspace'))
  const config = `[gateway]\nwebhook_rate_limit_per_minute = 0\n[provider]\nkind = "openai"\nbase_url = "${model.url}"\nmodel = "scripted"
api_key = "k"\ncontext_window = 200000\n[security.policy]\nlevel = "full"\n[log]\nlevel = "warn"\n`
  const server = await startSluice({ scratch, dataDir, config, ...build })
  const say = async (session, message) => {
    const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/json', 'x-session-id': session }
    const answer = await fetch(`${server.url}/webhook`, { method: 'POST', headers, body: JSON.stringify({ message }) })
    if (!answer.ok) throw new Error(`Sluice answered ${answer.status}: ${await answer.text()}`)
  }
  return { server, say }
}

/** Returns the CPU time of the daemon for one turn, in microseconds: short messages in twenty conversations, one after the other. */
export async function cpuOfTurns({ server, say, turns, name = 'cpu' }) {
  const before = threadsCpuMs(server.pid)
  for (let at = 0; at < turns; at++) await say(`${name}-${at % CONVERSATIONS}`, '[task: short] hello')
  return ((threadsCpuMs(server.pid) - before) * 1000) / turns
}
