/** Every command while a daemon holds the data directory: none opens its database, and all but the local ones ask the daemon. */
import { existsSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { scratch } from '@sluice/qa/daemons/bundle'
import { piped, sluiceWith } from '@sluice/qa/daemons/run-command'
import { type CatalogueId, defineFeature, ROWS } from '@sluice/sdk'
import { lockDataDir } from '@sluice/store'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { CliCommand } from '../command.ts'
import { CORE_COMMANDS } from '../core-commands.ts'
import { embedderCommand, featureCommands } from '../feature-commands.ts'

/**
 * Commands that work on files of the caller or wait for messages on standard input, and need no daemon to begin. Any other command must
 * ask the daemon.
 */
const LOCAL =
  /^(backup|restore|upgrade|secrets rotate|store (migrate|recovered)|cluster sign|daemon|setup|chat|completion|mcp serve|config (check|get|set|seal|schema|init)|webhook check|service (install|status|uninstall)|sop validate|native install)$/

const providers = [{ kinds: ['offline'], load: async () => ({}) as never }]
const owners = ROWS.flatMap(([id, row]) => ((row.commands ?? []).length > 0 ? [id] : []))
const features = [...owners, 'x-mine' as const].map((id) =>
  defineFeature({ id: id as CatalogueId, build: () => (id === 'x-mine' ? { providers } : {}) }),
)

const mine = embedderCommand(features, 'mine')
const COMMANDS: readonly CliCommand[] = [...CORE_COMMANDS, ...featureCommands(features), ...(mine ? [mine] : [])]

/** The arguments of commands that would refuse others before they begin. */
const ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  agent: ['-m', 'hello'],
  'config get': ['gateway.port'],
  'config set': ['gateway.port', '1234'],
  'config seal': ['provider.api_key'],
  'webhook send': ['hello'],
  'inbox replay': ['1'],
  'outbox replay': ['1'],
  'sessions erase': ['1'],
  'sop simulate': ['--event', '-'],
  'rooms try': ['telegram/bot/room', '--transcript', '-'],
  'memory forget': ['1'],
  'memory assign': ['1'],
  // The service of the machine that runs the tests must not change.
  'service install': ['--print', '--scope', 'user'],
  'service uninstall': ['--scope', 'none'],
}

const cleanups: (() => unknown)[] = []
afterAll(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

let dir = ''
const asked: string[] = []

/** A daemon that holds the lock, and refuses every request except for its health. */
beforeAll(async () => {
  const made = scratch('[log]\nlevel = "error"\n')
  dir = made.dir
  cleanups.push(made.dispose)
  cleanups.push(lockDataDir(dir).release)
  const server = createServer(({ method, url = '' }, response) => {
    if (url !== '/health') asked.push(`${method} ${url}`)
    response.statusCode = url === '/health' ? 200 : 503
    response.setHeader('content-type', 'application/json')
    response.end(url === '/health' ? '{}' : '{"error":"The daemon is busy","code":"unavailable"}')
  })
  await new Promise<void>((resolve) => server.listen(join(dir, 'control.sock'), resolve))
  cleanups.push(() => server.close())
})

afterEach(() => rmSync(join(dir, 'sluice.db'), { force: true }))

test.each(COMMANDS.map((command) => [command.name, command] as const))('%s', async (name, { argsMin = 0 }) => {
  asked.length = 0
  const args = ARGUMENTS[name] ?? Array.from({ length: argsMin }, () => '1')
  const { out, err } = await sluiceWith(features, piped('{}'))(...name.split(' '), ...args, '--data-dir', dir)
  expect(existsSync(join(dir, 'sluice.db'))).toBe(false)
  if (LOCAL.test(name)) return
  expect(out + err).toContain('The daemon is busy')
  expect(asked).not.toEqual([])
})
