import { defineFeature } from '@sluice/sdk'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { parseConfig } from '../read/read-config.ts'
import { type LimitedClient, limitsOf, loopTurnsOf, sharesOf } from './limits.ts'

const section = { path: 'channels_config.roomchat', schema: v.object({ token: v.optional(v.string(), 't') }) }
const features = [defineFeature({ id: 'channel-roomchat', section, build: () => ({}) })]
const load = (text = '') => parseConfig({ configFile: '/none/config.toml', dataDir: '/none', features, env: {} }, text)

const ANN: LimitedClient = { client: 'ann', standing: 'listed', channel: 'roomchat' }
const EVE: LimitedClient = { client: 'eve', standing: 'stranger', channel: 'roomchat' }
const DEVICE: LimitedClient = { client: 'device:1', standing: 'client' }
const OPERATOR: LimitedClient = { client: 'device:2', standing: 'operator' }

test('by default only strangers have limits, each one and all together', async () => {
  const config = await load()
  expect([ANN, DEVICE, OPERATOR].flatMap((client) => limitsOf(config, client))).toEqual([])
  expect(limitsOf(config, EVE)).toEqual([
    { key: 'eve', turnsPerHour: 20, turnsInFlight: 1, usdPerDay: 0 },
    { key: 'strangers', turnsPerHour: 200, turnsInFlight: 4, usdPerDay: 1 },
  ])
  expect(loopTurnsOf(config, 'roomchat')).toBe(20)
})

test.each([
  ['[cost]\ndaily_limit_usd = 5', 0.5],
  ['[cost]\ndaily_limit_usd = 500', 1],
  ['[cost]\ndaily_limit_usd = 5\n[limits.strangers.pool]\nusd_per_day = 3', 3],
])('strangers share a part of the day limit: %s', async (text, usdPerDay) => {
  expect(limitsOf(await load(text), EVE)[1]).toMatchObject({ usdPerDay })
})

test('a channel overrides single keys, and a pool of its own has its own key', async () => {
  const config = await load(`
    [limits]
    turns_per_hour = 9
    usd_per_day = 2
    [limits.operators]
    turns_in_flight = 3
    [channels_config.roomchat.limits]
    turns_per_hour = 5
    loop_turns = 0
    [channels_config.roomchat.limits.strangers]
    turns_per_hour = 0
    turns_in_flight = 0
    pool = { turns_per_hour = 7 }
  `)
  expect(limitsOf(config, ANN)).toEqual([{ key: 'ann', turnsPerHour: 5, turnsInFlight: 0, usdPerDay: 2 }])
  expect(limitsOf(config, DEVICE)).toEqual([{ key: 'device:1', turnsPerHour: 9, turnsInFlight: 0, usdPerDay: 2 }])
  expect(limitsOf(config, OPERATOR)).toEqual([{ key: 'device:2', turnsPerHour: 0, turnsInFlight: 3, usdPerDay: 0 }])
  expect(limitsOf(config, EVE)).toEqual([{ key: 'strangers:roomchat', turnsPerHour: 7, turnsInFlight: 4, usdPerDay: 1 }])
  expect(loopTurnsOf(config, 'roomchat')).toBe(0)
  expect(loopTurnsOf(config, 'other')).toBe(20)
})

test('a limit that is not a number is a mistake in the file', async () => {
  await expect(load('[limits]\nturns_per_hour = -1')).rejects.toMatchObject({ code: 'config_invalid' })
  await expect(load('[channels_config.roomchat.limits]\nusd_per_day = "much"')).rejects.toMatchObject({ code: 'config_invalid' })
})

const MB = 1024 * 1024

test('each standing has its share, and an operator has no limit', async () => {
  const config = await load()
  const common = { streams: 16, downloads: 4 }
  expect(sharesOf(config, DEVICE)).toEqual({
    turnsRunning: 3,
    turnsWaiting: 32,
    waitingBytes: 16 * MB,
    attachmentBytes: 256 * MB,
    ...common,
  })
  expect(sharesOf(config, ANN)).toEqual({ turnsRunning: 2, turnsWaiting: 32, waitingBytes: 4 * MB, attachmentBytes: 64 * MB, ...common })
  const pool = { key: 'strangers', turnsWaiting: 200, attachmentBytes: 256 * MB }
  expect(sharesOf(config, EVE)).toEqual({ turnsRunning: 1, turnsWaiting: 8, waitingBytes: MB, attachmentBytes: 16 * MB, ...common, pool })
  expect(new Set(Object.values(sharesOf(config, OPERATOR)))).toEqual(new Set([Number.POSITIVE_INFINITY]))
})

test.each([
  [1, [1, 1, 1]],
  [4, [1, 1, 1]],
  [16, [6, 4, 2]],
])('the share of running turns follows max_concurrent_turns: %i', async (slots, expected) => {
  const config = await load(`[agent]\nmax_concurrent_turns = ${slots}`)
  expect([DEVICE, ANN, EVE].map((client) => sharesOf(config, client).turnsRunning)).toEqual(expected)
})

test('a channel overrides single shares, and 0 removes one', async () => {
  const config = await load(`
    [limits]
    turns_running = 5
    attachments_mb = 0
    streams = 2
    [limits.strangers]
    waiting_mb = 2
    [channels_config.roomchat.limits]
    turns_waiting = 7
    strangers = { turns_running = 2, attachments_mb = 3, pool = { turns_waiting = 5 } }
  `)
  expect(sharesOf(config, DEVICE)).toMatchObject({
    turnsRunning: 5,
    turnsWaiting: 32,
    attachmentBytes: Number.POSITIVE_INFINITY,
    streams: 2,
  })
  expect(sharesOf(config, ANN)).toMatchObject({ turnsRunning: 5, turnsWaiting: 7, waitingBytes: 4 * MB })
  expect(sharesOf(config, EVE)).toMatchObject({ turnsRunning: 2, turnsWaiting: 8, waitingBytes: 2 * MB, attachmentBytes: 3 * MB })
  expect(sharesOf(config, EVE).pool).toEqual({ key: 'strangers:roomchat', turnsWaiting: 5, attachmentBytes: 256 * MB })
})
