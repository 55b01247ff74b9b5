/** Each build in an empty network namespace: the daemon and its commands try to reach only what the configuration names. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { bundle, environment, scratch } from '../daemons/bundle.ts'
import { namespaceTools, recordAttempts } from './connection-attempts.ts'

const tools = await namespaceTools()
const missing = 'missing' in tools ? tools.missing : undefined
if (missing !== undefined) console.warn(`no connection attempts are recorded: ${missing}`)

const cleanups: (() => void)[] = []
afterEach(() => {
  for (const clean of cleanups.splice(0)) clean()
})

const TEST_MS_MAX = 300_000

/** Runs the script with `$SLUICE` as the command line of the build and `$DATA` as its data directory. */
async function record(profile: string, config: string, script: string) {
  if ('missing' in tools) throw new Error(tools.missing)
  const { dir, dispose } = scratch(config)
  cleanups.push(dispose)
  const logs = scratch()
  cleanups.push(logs.dispose)
  writeFileSync(join(logs.dir, 'sluice'), `#!/bin/sh\nexec ${process.execPath} ${bundle(profile)} "$@" --data-dir ${dir}\n`, {
    mode: 0o755,
  })
  const env = environment({ PATH: `${logs.dir}:${process.env.PATH ?? ''}`, DATA: dir })
  return recordAttempts(tools, script, { log: join(logs.dir, 'trace'), env })
}

/** Starts the daemon, waits until it is ready, uses it, and stops it. Fails if it did not answer. */
const session = (use: string): string => `
sluice daemon --port 0 >"$DATA/out" 2>&1 &
daemon=$!
until sluice status >/dev/null 2>&1; do kill -0 $daemon || { cat "$DATA/out"; exit 1; }; sleep 0.2; done
${use}
kill -TERM $daemon
wait $daemon || { cat "$DATA/out"; exit 1; }`

const USE = `
sluice agent --message hello || exit 1
sluice doctor >"$DATA/doctor"
sluice features >/dev/null
sluice config check
kill -HUP $daemon
sluice agent --message again || exit 1`

describe.skipIf(missing !== undefined)('connection attempts', () => {
  test('are recorded, attempts of child processes and name look-ups included', { timeout: TEST_MS_MAX }, async () => {
    const ask = (url: string) => `${process.execPath} -e 'fetch("${url}").catch(() => 0)'`
    const ofChild = `(${ask('http://[2001:db8::1]')})`
    const { attempts } = await record('minimal', '', [ask('http://192.0.2.1'), ask('http://name.example'), ofChild].join('; '))
    expect(attempts).toEqual(['192.0.2.1', '2001:db8::1', 'a name server'])
  })

  test.each(['minimal', 'standard', 'full'])(
    'the %s build makes none without a configuration',
    { timeout: TEST_MS_MAX },
    async (profile) => {
      const { code, output, attempts } = await record(profile, '', session(USE))
      expect(output).toContain('again')
      expect({ code, attempts }).toEqual({ code: 0, attempts: [] })
    },
  )

  test('the full build makes them only to the addresses that its configuration names', { timeout: TEST_MS_MAX }, async () => {
    const config = `[provider]
kind = "openai"
base_url = "http://192.0.2.1/v1"
api_key = "k"
model = "m"
[channels_config.telegram]
bot_token = "1:a"
api_url = "http://192.0.2.2"
allowed_users = ["*"]
[channels_config.slack]
bot_token = "xoxb-a"
app_token = "xapp-a"
api_url = "http://192.0.2.3"
allowed_users = ["*"]
[channels_config.discord]
bot_token = "t"
api_url = "http://192.0.2.4"
allowed_users = ["*"]
[channels_config.mqtt]
broker_url = "mqtt://192.0.2.5"
[observability]
backend = "otel"
otel_endpoint = "http://192.0.2.6:4318"
`
    const { code, attempts } = await record('full', config, session('sluice agent --message hello; sluice doctor >/dev/null; sleep 2'))
    const named = [1, 2, 3, 4, 5, 6].map((host) => `192.0.2.${host}`)
    expect(attempts.filter((address) => !named.includes(address))).toEqual([])
    expect(attempts).toEqual(expect.arrayContaining(['192.0.2.1', '192.0.2.2']))
    expect(code).toBe(0)
  })
})
