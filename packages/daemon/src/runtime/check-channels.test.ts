import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { configuredChannels } from '@sluice/runtime/configured-channels'
import {
  checkApprovalChats,
  checkChannels,
  checkDeliveries,
  checkOperatorChats,
  checkOperators,
  checkShares,
  checkWebhooks,
} from '@sluice/runtime/doctor'
import { type Channel, defineFeature, secretText, type Webhook } from '@sluice/sdk'
import * as v from 'valibot'
import { afterEach, describe, expect, test } from 'vitest'
import { type OpenRuntime, openRuntime } from './open-runtime.ts'

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

const provider = defineFeature({
  id: 'provider-offline',
  build: () => ({ providers: [{ kinds: ['offline'], load: async () => ({}) as never }] }),
})

/** A channel that needs a token, can be disabled, and fails to register with the token `wrong`. */
const chat = (name: string) =>
  defineFeature({
    id: `x-${name}`,
    section: {
      path: `channels_config.${name}`,
      schema: v.object({
        token: v.string(),
        enabled: v.optional(v.boolean(), true),
        webhook_secret: v.optional(secretText()),
        allowed_users: v.optional(v.array(v.string()), []),
      }),
    },
    build(_host, { token, enabled, webhook_secret, allowed_users }) {
      const webhook = { path: `/${name}`, ...(webhook_secret ? {} : { unsigned: 'webhook_secret' }) } as unknown as Webhook
      const missingConfig = token === 'none' ? { missingConfig: 'a real token' } : {}
      const channel = { name, ...missingConfig, allow: allowed_users, limits: { text: 1, unit: 'utf16' }, webhook } as unknown as Channel
      const register = async (): Promise<void> => {
        if (token === 'wrong') throw new Error('the token is wrong')
      }
      return { channels: enabled ? [channel] : [], register }
    },
  })

async function arrange(toml: string): Promise<OpenRuntime> {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-doctor-'))
  const configFile = join(dataDir, 'config.toml')
  writeFileSync(configFile, `[provider]\nkind = "offline"\n${toml}`)
  const features = [provider, chat('one'), chat('two')]
  const runtime = await openRuntime({ features, dataDir, configFile, env: {}, profile: 'test', version: '0.0.0', quiet: true })
  cleanups.push(
    () => rmSync(dataDir, { recursive: true, force: true }),
    () => runtime.close(0),
  )
  return runtime
}

const SIGNED = '[channels_config.one]\ntoken = "t"\nwebhook_secret = "s"\n'

test('warns while no chat reaches an operator', async () => {
  expect(checkApprovalChats((await arrange(SIGNED)).snapshot())).toMatchObject({ check: 'approvals', status: 'warn' })
  expect(checkApprovalChats((await arrange(`${SIGNED}[approvals]\nchannels = ["dashboard"]\n`)).snapshot())).toMatchObject({
    status: 'warn',
  })
  expect(checkApprovalChats((await arrange(`${SIGNED}[approvals]\nchannels = ["one:ann"]\n`)).snapshot())).toMatchObject({
    status: 'ok',
    detail: 'operators are asked on one:ann',
  })
})

test('fails for a chat that nothing reaches', async () => {
  const checked = async (toml: string) => checkOperatorChats((await arrange(`${SIGNED}${toml}`)).snapshot())
  expect(await checked('[approvals]\nchannels = ["one:ann", "dashboard"]\n[notify]\nchannels = ["one:ops"]\n')).toEqual([])
  expect(await checked('[approvals]\nchannels = ["three:ann"]\n[notify]\nchannels = ["messenger:77"]\n')).toMatchObject([
    { check: 'approvals', status: 'fail', detail: "nothing reaches three:ann: the channel 'three' is not connected" },
    { check: 'notify', status: 'fail', detail: expect.stringContaining('nothing reaches messenger:77') },
  ])
})

test('warns of an operator whom no entry of the allowlist names', async () => {
  const checked = async (allowed: string) =>
    checkOperators((await arrange(`${SIGNED}operators = ["ann", "bob"]\nallowed_users = ${allowed}\n`)).snapshot())
  expect(await checked('["ann", "bob"]')).toEqual([])
  expect(await checked('["*", "ann"]')).toMatchObject([
    { check: 'operators', status: 'warn', detail: expect.stringContaining('names bob, so') },
  ])
})

describe('checkWebhooks', () => {
  test('passes webhooks with a secret, and an installation without webhooks', async () => {
    expect(checkWebhooks((await arrange(SIGNED)).snapshot())).toEqual([
      { check: 'webhooks', status: 'ok', detail: 'one: every request is verified', fix: null },
    ])
    expect(checkWebhooks((await arrange('')).snapshot())).toMatchObject([
      { status: 'ok', detail: 'no channel with a webhook is configured' },
    ])
  })

  test('fails a webhook without a secret, with the key to set', async () => {
    expect(checkWebhooks((await arrange(`${SIGNED}[channels_config.two]\ntoken = "t"\n`)).snapshot())).toEqual([
      {
        check: 'webhooks',
        status: 'fail',
        detail: 'two: [channels_config.two] webhook_secret is not set, so any client can post as the platform',
        fix: 'sluice config set channels_config.two.webhook_secret',
      },
    ])
  })
})

test('checkChannels fails a channel that lacks a setting', async () => {
  expect(checkChannels((await arrange(SIGNED)).snapshot())).toEqual([])
  expect(checkChannels((await arrange('[channels_config.one]\ntoken = "none"\n')).snapshot())).toEqual([
    { check: 'channels', status: 'fail', detail: 'one cannot work without a real token', fix: 'set it in [channels_config.one]' },
  ])
})

test('checkShares tells what one device may hold, and warns of a share without a limit', async () => {
  expect(checkShares((await arrange('')).snapshot())).toEqual({
    check: 'shares',
    status: 'ok',
    detail: 'one device may have 3 turns run and 32 wait with 16 MB of text; 16 streams, 4 downloads, 256 MB of attachments and results',
    fix: null,
  })
  expect(checkShares((await arrange('[limits]\nstreams = 0\nwaiting_mb = 0\n')).snapshot())).toEqual({
    check: 'shares',
    status: 'warn',
    detail: 'one client may take all there is: waiting_mb, streams',
    fix: 'set these keys in [limits]',
  })
})

test('configuredChannels tells ready, broken and unconfigured channels apart', async () => {
  const ready = configuredChannels((await arrange(SIGNED)).snapshot())
  expect(ready.ready).toMatchObject([{ channel: { name: 'one' }, section: 'channels_config.one', allowKey: 'allowed_users' }])
  expect(ready.unconfigured).toMatchObject([{ name: 'two', section: 'channels_config.two', reason: expect.stringContaining('token') }])
  const toml = `${SIGNED}enabled = false\n[channels_config.two]\ntoken = "wrong"\n[channels_config.fedchat]\n`
  const others = configuredChannels((await arrange(toml)).snapshot())
  expect(others.ready).toEqual([])
  expect(others.unconfigured).toMatchObject([{ name: 'one', reason: 'it is not enabled' }])
  expect(others.broken).toMatchObject([
    { name: 'two', reason: 'the token is wrong' },
    { name: 'fedchat', reason: expect.stringContaining('this build leaves it out') },
  ])
})

describe('checkDeliveries', () => {
  test('passes while no message or reply was given up', async () => {
    expect(await checkDeliveries((await arrange('')).store)).toEqual([
      { check: 'deliveries', status: 'ok', detail: 'no message or reply was given up', fix: null },
    ])
  })

  test('warns of messages and replies that were given up', async () => {
    const runtime = await arrange('')
    const { inbox, outbox } = runtime.store
    const message = { id: 'm', account: 'bot', sender: 'alice', to: { to: 'room' }, text: 'hi' }
    const messages = [{ session: 'channel:one/room', message }]
    await inbox.keep({ channel: 'one', verdict: 'signed', raw: null, receivedAtMs: 1, messages })
    await inbox.start(1, 'turn', 5)
    await inbox.markDead(1, { error: 'no model', atMs: 1 })
    const reply = {
      channel: 'one',
      account: 'bot',
      to: { to: 'room' },
      text: 'hi',
      part: 1,
      parts: 1,
      clientId: 'c',
      turnId: null,
      createdAtMs: 1,
    }
    for (const number of await outbox.add([reply, reply])) {
      await outbox.start(number)
      await outbox.giveUp(number, { state: number === 1 ? 'dead' : 'ambiguous', error: 'refused', atMs: 1 })
    }
    expect(await checkDeliveries(runtime.store)).toMatchObject([
      { status: 'warn', detail: 'messages given up: 1', fix: "see 'sluice inbox dead'" },
      { status: 'warn', detail: 'replies given up: 1, ambiguous, so perhaps sent: 1', fix: "see 'sluice outbox dead'" },
    ])
  })
})
