import type { Command, DeviceRecord } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { testSnapshot } from '../testing/test-snapshot.ts'
import { CommandRuns } from './command-runs.ts'

test('a command that changes the configuration is recorded with its user and its keys, and not with values', async () => {
  const audited: DeviceRecord[] = []
  const command: Command = {
    name: 'probe add',
    summary: 'A probe',
    async run({ setInConfig, addToConfig }) {
      await setInConfig({ 'mcp.servers.notes.url': 'https://secret.example', 'mcp.servers.old': undefined })
      await addToConfig({ list: 'peripherals.boards', entry: { board: 'a' }, set: { 'peripherals.enabled': true } })
      return 0
    },
  }
  const parts = { commands: [command] }
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const runs = new CommandRuns({
    snapshot: () => testSnapshot({ instances: [{ parts }] as never }),
    pin: () => () => {},
    addToConfig: async () => {},
    setInConfig: async () => {},
    audit: async (record) => void audited.push(record),
    log,
  })
  const frames: unknown[] = []
  const request = { words: ['probe', 'add'], cwd: '/', json: false, by: 'cli:ada', asks: false, signal: new AbortController().signal }
  await runs.run(request, (frame) => void frames.push(frame))
  expect(frames.at(-1)).toEqual({ type: 'exit', code: 0 })
  expect(audited).toEqual([
    { kind: 'config_changed', by: 'cli:ada', detail: { keys: ['mcp.servers.notes.url', 'mcp.servers.old'] } },
    { kind: 'config_changed', by: 'cli:ada', detail: { keys: ['peripherals.boards', 'peripherals.enabled'] } },
  ])
})
