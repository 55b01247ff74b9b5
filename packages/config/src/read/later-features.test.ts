/** The code of a channel is loaded when the file or the environment names its section, and its absence is never seen. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineFeature, type Feature, isUnloaded, laterFeature } from '@sluice/sdk'
import * as v from 'valibot'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { setConfig, withoutPlainSecrets } from '../edit/set-config.ts'
import { parseConfig } from './read-config.ts'

const channelOf = (id: 'channel-irc' | 'channel-slack', name: string) => {
  const schema = v.object({ server: v.pipe(v.string(), v.metadata({ env: [`SVC_${name.toUpperCase()}_SERVER`] })) })
  return laterFeature(id, async () => ({
    default: defineFeature({ id, section: { path: `channels_config.${name}`, schema }, build: () => ({}) }),
  }))
}

let irc: Feature
let slack: Feature
let dataDir: string
beforeEach(() => {
  irc = channelOf('channel-irc', 'irc')
  slack = channelOf('channel-slack', 'slack')
  dataDir = mkdtempSync(join(tmpdir(), 'sluice-later-'))
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

const source = (env = {}) => ({ configFile: join(dataDir, 'config.toml'), dataDir, features: [irc, slack], env })
const loaded = () => [irc, slack].filter((feature) => !isUnloaded(feature)).map(({ id }) => id)

test('an empty file loads no channel, and each is unconfigured', async () => {
  const config = await parseConfig(source(), '')
  expect(loaded()).toEqual([])
  expect(config.of('channel-irc')).toEqual({ state: 'unconfigured', why: '[channels_config.irc] is not configured' })
  expect(config.leftOut).toEqual([])
})

test.each([
  ['its section', '[channels_config.irc]\nserver = "a"'],
  ['a key of its section', '[channels_config]\nirc.server = "a"'],
  ['an escape in its name', '[channels_config."\\u0069rc"]\nserver = "a"'],
])('a file with %s loads the channel and no other', async (_what, text) => {
  const config = await parseConfig(source(), text)
  expect(loaded()).toEqual(['channel-irc'])
  expect(config.of('channel-irc')).toEqual({ state: 'configured', value: { server: 'a' } })
})

test('a variable of its section loads the channel', async () => {
  const config = await parseConfig(source({ SVC_IRC_SERVER: 'a' }), '')
  expect(loaded()).toEqual(['channel-irc'])
  expect(config.of('channel-irc')).toEqual({ state: 'configured', value: { server: 'a' } })
})

test('a channel that a changed file names is loaded then', async () => {
  const before = await parseConfig(source(), '')
  const after = await parseConfig(source(), '[channels_config.irc]\nserver = "a"')
  const hashes = [before, after].map((config) => config.hash('channel-irc', 'channels_config.irc'))
  expect(new Set(hashes).size).toBe(2)
  expect(after.hash('channel-slack', 'channels_config.slack')).toBe(before.hash('channel-slack', 'channels_config.slack'))
})

test('the problems of a wrong file are the same as with all channels', async () => {
  await expect(parseConfig(source(), '[channels_config."\\u0069rc"]\nserver = 1')).rejects.toMatchObject({
    fields: { problems: [expect.objectContaining({ message: expect.stringContaining('channels_config.irc.server') })] },
  })
})

test('a program that sets a key of a channel finds it', async () => {
  await setConfig(source(), [{ path: 'channels_config.slack.server', value: '"b"' }])
  expect((await parseConfig(source(), '[channels_config.slack]\nserver = "b"')).of('channel-slack')).toMatchObject({ state: 'configured' })
})

test('a copy without secrets keeps the sections of channels that were not loaded', async () => {
  const text = '[channels_config.irc]\nserver = "a"\n'
  writeFileSync(join(dataDir, 'config.toml'), text)
  expect(await withoutPlainSecrets(source(), text)).toEqual({ text, removed: [] })
})
