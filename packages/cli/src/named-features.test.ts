/** Which commands load the channels that the configuration does not name. */
import { scratch } from '@sluice/qa/daemons/bundle'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { defineFeature, type Feature, isUnloaded, laterFeature } from '@sluice/sdk'
import * as v from 'valibot'
import { afterEach, beforeEach, expect, test } from 'vitest'

const schema = v.object({ server: v.string(), nick: v.optional(v.pipe(v.string(), v.minLength(2)), 'sluice') })
const OFFLINE = defineFeature({
  id: 'provider-offline',
  build: () => ({ providers: [{ kinds: ['offline'], load: async () => ({}) as never }] }),
})

let irc: Feature
let slack: Feature
let dir: string
let dispose: () => void
beforeEach(() => {
  irc = laterFeature('channel-irc', async () => ({
    default: defineFeature({ id: 'channel-irc', section: { path: 'channels_config.irc', schema }, build: () => ({}) }),
  }))
  const retries = v.object({ retries: v.optional(v.number(), 3) })
  slack = laterFeature(
    'channel-slack',
    async () => ({
      default: defineFeature({ id: 'channel-slack', section: { path: 'channels_config.slack', schema: retries }, build: () => ({}) }),
    }),
    { 'channels_config.slack': { retries: 3 } },
  )
  const made = scratch('[provider]\nkind = "offline"\n[channels_config.irc]\nserver = "irc.example"\n')
  dir = made.dir
  dispose = made.dispose
})
afterEach(() => dispose())

const run = (...words: string[]) => sluiceWith([OFFLINE, irc, slack])(...words, '--data-dir', dir)
const loaded = () => [irc, slack].filter((feature) => !isUnloaded(feature)).map(({ id }) => id)

test('config get loads what the file names, and shows the defaults of the rest', async () => {
  const { code, out } = await run('config', 'get', 'channels_config')
  expect([code, loaded()]).toEqual([0, ['channel-irc']])
  expect(JSON.parse(out)).toEqual({ irc: { server: 'irc.example', nick: 'sluice' }, slack: { retries: 3 } })
  expect((await run('config', 'get', 'channels_config.slack.retries', '--source')).out).toMatch(
    /^.*\nchannels_config\.slack\.retries +3 +default\n$/,
  )
  expect(loaded()).toEqual(['channel-irc'])
})

test('a key without a value has the same error whether its channel is loaded or not', async () => {
  const before = await run('config', 'get', 'channels_config.slack.token')
  expect(loaded()).toEqual(['channel-irc'])
  await run('config', 'schema')
  expect(before).toMatchObject({ code: 1, err: expect.stringContaining("nothing is set for 'channels_config.slack.token'") })
  expect(await run('config', 'get', 'channels_config.slack.token')).toEqual(before)
})

test.each([['pair', 'list'], ['inbox', 'list'], ['status']])('%j loads no channel that the file does not name', async (...words) => {
  await run(...words)
  expect(loaded()).not.toContain('channel-slack')
})

test.each([['config', 'schema'], ['config', 'check'], ['features'], ['completion', 'bash']])('%j loads every channel', async (...words) => {
  expect((await run(...words)).code).toBe(0)
  expect(loaded()).toEqual(['channel-irc', 'channel-slack'])
})
