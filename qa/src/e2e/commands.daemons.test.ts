/** Actions of commands have the same effect with a running daemon and without one, where the next daemon carries them out. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Daemon, startDaemon } from '@sluice/daemon'
import type { Store } from '@sluice/sdk'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { always } from '../../../profiles/always.ts'
import { scratch } from '../daemons/bundle.ts'
import { sluiceWith } from '../daemons/run-command.ts'
import { TEST_CHAT, testChannel } from '../daemons/test-channel.ts'

const CONFIG = `[log]\nlevel = "error"\n[provider]\nkind = "offline"\n${TEST_CHAT}`
/** For work that happens in real time. */
const SOON = { timeout: 10_000, interval: 5 }

const SOP_TOML = '[sop]\nname = "check"\ndescription = "d"\n[[triggers]]\ntype = "manual"\n'
const SOP_MD = '## Steps\n\n1. **Wait** - Wait for a person.\n   - kind: checkpoint\n'

let dataDir: string
let dispose: () => void
let daemon: Daemon | undefined
let sent: string[]

beforeEach(() => {
  const made = scratch(CONFIG)
  dataDir = made.dir
  dispose = made.dispose
  sent = []
  mkdirSync(join(dataDir, 'sops', 'check'), { recursive: true })
  writeFileSync(join(dataDir, 'sops', 'check', 'SOP.toml'), SOP_TOML)
  writeFileSync(join(dataDir, 'sops', 'check', 'SOP.md'), SOP_MD)
})
afterEach(async () => {
  await stop()
  dispose()
})

const features = () => [...always, testChannel({ send: async ({ text }) => void sent.push(text ?? '') })]

async function start(): Promise<Store> {
  const configFile = join(dataDir, 'config.toml')
  daemon = await startDaemon({
    features: features(),
    dataDir,
    configFile,
    env: {},
    profile: 'test',
    version: '0.0.0',
    host: '127.0.0.1',
    port: 0,
  })
  return daemon.runtime.store
}

async function stop(): Promise<void> {
  await daemon?.stop()
  daemon = undefined
}

const sluice = async (...argv: string[]) => {
  const ran = await sluiceWith(features())(...argv, '--json', '--data-dir', dataDir)
  expect(ran.code, ran.err).toBe(0)
  return JSON.parse(ran.out)
}

interface Action {
  /** Runs in a daemon before the action. */
  readonly prepare: (store: Store) => Promise<unknown>
  readonly act: () => Promise<unknown>
  /** Reads what the daemon has made of the action. */
  readonly read: (store: Store) => Promise<unknown>
  readonly effect: unknown
}

const ACTIONS: Readonly<Record<string, Action>> = {
  'approvals approve': {
    prepare: ({ approvals }) =>
      approvals.open(
        {
          runId: 'run-1',
          stepId: 'deploy',
          gate: 'event',
          workflow: 'release',
          title: 'Deploy?',
          message: '',
          approveKeywords: [],
          rejectKeywords: [],
          createdAtMs: Date.now(),
          expiresAtMs: null,
          token: 'token-1',
        },
        [],
      ),
    act: () => sluice('approvals', 'approve', 'run-', 'deploy'),
    async read({ approvals }) {
      const approval = await approvals.get({ runId: 'run-1', stepId: 'deploy' })
      return { state: approval?.state, by: approval?.by, isDispatched: approval?.acknowledgedAtMs !== null }
    },
    effect: { state: 'approved', by: expect.stringMatching(/^cli:/), isDispatched: true },
  },
  'inbox replay': {
    async prepare({ inbox }) {
      const message = { id: 'm1', account: 'bot', sender: 'alice', to: { to: 'room' }, text: 'hello' }
      const arrival = { channel: 'testchat', verdict: 'x-signature', raw: null, receivedAtMs: Date.now() }
      await inbox.keep({ ...arrival, messages: [{ session: 'channel:testchat/bot/room/alice', message }] })
      await inbox.start(1, 'turn-1', 5)
      await inbox.markDead(1, { error: 'no model', atMs: Date.now() })
    },
    act: () => sluice('inbox', 'replay', '--dead'),
    read: async ({ inbox }) => ({ state: (await inbox.get(1))?.state, sent: sent.length }),
    effect: { state: 'done', sent: 1 },
  },
  'outbox replay': {
    async prepare({ outbox }) {
      const reply = { channel: 'testchat', account: 'bot', to: { to: 'room' }, text: 'hello back', part: 1, parts: 1 }
      const [number = 0] = await outbox.add([{ ...reply, clientId: 'client-1', turnId: null, createdAtMs: Date.now() }])
      await outbox.start(number)
      await outbox.giveUp(number, { state: 'ambiguous', error: 'cut off', atMs: Date.now() })
    },
    act: () => sluice('outbox', 'replay', '1'),
    read: async ({ outbox }) => ({ state: (await outbox.get(1))?.state, sent }),
    effect: { state: 'sent', sent: ['hello back'] },
  },
  'sop run': {
    prepare: async () => {},
    act: () => sluice('sop', 'run', 'check', '--payload', 'not JSON'),
    async read({ sops, approvals }) {
      const [run] = await sops.runs({ limit: 2 })
      return { status: run?.status, payload: run?.event.payload, by: run?.event.by, asked: (await approvals.list({ limit: 2 })).length }
    },
    effect: { status: 'paused_checkpoint', payload: 'not JSON', by: expect.stringMatching(/^cli:/), asked: 1 },
  },
  'sop cancel': {
    prepare: async () => void (await daemon?.runtime.sops()?.run('check', { payload: null, atMs: Date.now(), by: 'test' })),
    async act() {
      const [run] = await sluice('sop', 'runs')
      await sluice('sop', 'cancel', run.run_id, 'not today')
    },
    async read({ sops, approvals }) {
      const [run] = await sops.runs({ limit: 2 })
      return { status: run?.status, open: (await approvals.counts()).pending }
    },
    effect: { status: 'cancelled', open: 0 },
  },
  'sop replay': {
    async prepare({ sops }) {
      await daemon?.runtime.sops()?.run('check', { payload: null, atMs: Date.now(), by: 'test' })
      await daemon?.runtime.sops()?.run('check', { payload: 'late', atMs: Date.now(), by: 'test' })
      const [waiting, first] = await sops.runs({ limit: 2 })
      if (waiting) await sops.advance(waiting, { ...waiting, status: 'expired', endedAtMs: Date.now() }, [])
      if (first) await daemon?.runtime.sops()?.cancel(first.id, 'test', 'make room')
    },
    async act() {
      const [run] = await sluice('sop', 'runs', '--status', 'expired')
      await sluice('sop', 'replay', run.run_id)
    },
    async read({ sops }) {
      const [run] = await sops.runs({ limit: 1 })
      return { status: run?.status, payload: run?.event.payload, by: run?.event.by }
    },
    effect: { status: 'paused_checkpoint', payload: 'late', by: expect.stringMatching(/^cli:/) },
  },
}

describe.each(Object.entries(ACTIONS))('sluice %s', (_name, { prepare, act, read, effect }) => {
  test('takes effect in a running daemon', async () => {
    const store = await start()
    await prepare(store)
    await act()
    await expect.poll(() => read(store), SOON).toEqual(effect)
  })

  test('takes effect at the next start of a daemon', async () => {
    await prepare(await start())
    await stop()
    await act()
    expect(sent).toEqual([])
    const store = await start()
    await expect.poll(() => read(store), SOON).toEqual(effect)
  })
})

test('a list has the same entries with a daemon and without one', async () => {
  const { prepare } = ACTIONS['inbox replay'] as Action
  await prepare(await start())
  const lists = [
    ['inbox', 'list'],
    ['inbox', 'dead'],
    ['inbox', 'show', '1'],
    ['approvals', 'list'],
    ['sop', 'list'],
    ['sop', 'validate'],
  ]
  const shown = async () => {
    const found: unknown[] = []
    for (const argv of lists) found.push(await sluice(...argv))
    return found
  }
  const byDaemon = await shown()
  await stop()
  expect(await shown()).toEqual(byDaemon)
})
