/** Failures that a quick retry cannot repair. */

import { REFUSED_MS } from '@sluice/kit'
import { describe, expect, test } from 'vitest'
import { isGateway } from './connection.ts'
import { INTENTS } from './gateway.ts'
import { DISCORD_TOKEN } from './testing/fake.ts'
import { channelOn, discordHarness, listenTo, until } from './testing/harness.ts'

const harness = discordHarness()

describe('the listener', () => {
  /** Listens until the platform refuses the connection, and returns the reason that `health` reports. */
  async function refused(): Promise<string> {
    const channel = channelOn(harness.fake, harness.host, { bot_token: DISCORD_TOKEN })
    const listening = listenTo(channel, harness.host)
    harness.stopAfter(listening)
    await until(() => expect(listening.health().state).toBe('down'))
    const asked = harness.fake.requests.length
    await harness.host.advance(REFUSED_MS * 0.75 - 1000)
    expect(harness.fake.requests).toHaveLength(asked)
    await harness.host.advance(REFUSED_MS * 0.25 + 1000)
    await until(() => expect(harness.fake.requests.length).toBeGreaterThan(asked))
    return listening.health().detail ?? ''
  }

  test('names a wrong token and waits long before the next attempt', async () => {
    harness.fake.changeToken('another token')
    expect(await refused()).toContain('bot_token')
  })

  test('names a token that only the gateway refuses', async () => {
    const once = {
      fault: 'status',
      status: 200,
      body: { url: harness.fake.url.replace('http', 'ws'), session_start_limit: { remaining: 9 } },
    } as const
    harness.fake.changeToken('another token')
    harness.fake.fail(once)
    expect(await refused()).toContain('bot_token')
    expect(harness.fake.happened.slice(0, 2)).toEqual(['identify', 'closed 4004'])
  })

  test('names an intent that is not switched on', async () => {
    await harness.start({ intents: INTENTS & ~32768 })
    expect(await refused()).toContain('Message Content Intent')
    expect(harness.fake.happened.slice(0, 2)).toEqual(['identify', 'closed 4014'])
  })

  test('makes no request without a token', async () => {
    const channel = channelOn(harness.fake, harness.host, { bot_token: '  ' })
    expect(channel.missingConfig).toBe('bot_token')
    const listening = listenTo(channel, harness.host)
    await until(() => expect(listening.health().state).toBe('down'))
    await listening.stop()
    expect(harness.fake.requests).toEqual([])
  })

  test('waits as long as the platform asks', async () => {
    harness.fake.fail({ fault: 'status', status: 429, headers: { 'retry-after': '600' }, body: { message: 'You are being rate limited.' } })
    const listening = listenTo(channelOn(harness.fake, harness.host), harness.host)
    harness.stopAfter(listening)
    await until(() => expect(listening.health().state).toBe('down'))
    await harness.host.advance(599_000)
    expect(harness.fake.requests).toHaveLength(1)
    await harness.host.advance(61_000)
    await until(() => expect(harness.fake.requests).toHaveLength(2))
  })

  test('begins no session when none is left for today', async () => {
    harness.fake.setSessionsLeft(0)
    const listening = listenTo(channelOn(harness.fake, harness.host), harness.host)
    harness.stopAfter(listening)
    await until(() => expect(listening.health()).toMatchObject({ state: 'down', detail: expect.stringContaining('used up') }))
    await harness.host.advance(14_399_000)
    expect([harness.fake.requests.length, harness.fake.happened]).toEqual([1, []])
    harness.fake.setSessionsLeft(9)
    await harness.host.advance(31_000)
    await until(() => expect(harness.fake.happened).toEqual(['identify']))
  })
})

test.each([
  ['wss://gateway.discord.gg', 'https://discord.com/api/v10', true],
  ['wss://gateway-us-east1-b.discord.gg', 'https://discord.com/api/v10', true],
  ['wss://api.example:8443', 'https://api.example', true],
  ['ws://api.example', 'http://api.example', true],
  ['ws://api.example', 'https://api.example', false],
  ['ws://10.0.0.1', 'http://api.example', false],
  ['wss://10.0.0.1', 'https://discord.com/api/v10', false],
  ['wss://notdiscord.gg', 'https://discord.com/api/v10', false],
  ['https://gateway.discord.gg', 'https://discord.com/api/v10', false],
])('decides whether %s is the gateway of %s', (target, api, expected) => expect(isGateway(new URL(target), new URL(api))).toBe(expected))
