import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { systemClock } from '@sluice/kit'
import type { Store } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import { testHost } from '@sluice/testkit/host'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { piped, type Ran, sluiceWith } from '../daemons/run-command.ts'

const EXAMPLES = resolve(import.meta.dirname, '../../../examples/sops')

let dataDir: string

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'sops-'))
  cpSync(EXAMPLES, join(dataDir, 'sops'), { recursive: true })
})
afterEach(() => rmSync(dataDir, { recursive: true }))

const sop = (...argv: string[]): Promise<Ran> => sluiceWith([])('sop', ...argv, '--data-dir', dataDir)
const json = async (...argv: string[]) => {
  const ran = await sop(...argv, '--json')
  return { ...ran, value: JSON.parse(ran.out) }
}
const withStore = async (use: (store: Store) => Promise<void>): Promise<void> => {
  const store = openStore({ file: join(dataDir, 'sluice.db'), clock: systemClock, log: testHost({}).log })
  await use(store).finally(() => store.close())
}

describe('sluice sop list', () => {
  test('shows each procedure with its triggers in the form kind:topic', async () => {
    const { code, out } = await sop('list')
    expect(code).toBe(0)
    expect(out).toMatch(/deploy-with-approval .* webhook:\/deploy manual/)
    expect(out).toMatch(/daily-digest .* cron:0 7 \* \* 1-5 manual/)
    expect(out).toMatch(/alert-from-broker .* mqtt:plant\/\+\/temperature/)
  })

  test('names the folder when it has no procedures', async () => {
    rmSync(join(dataDir, 'sops'), { recursive: true })
    expect((await sop('list')).out).toContain(`no procedures in ${join(dataDir, 'sops')}`)
    expect((await json('list')).value).toEqual([])
  })

  test('reports folders with errors', async () => {
    writeFileSync(join(dataDir, 'sops/daily-digest/SOP.toml'), '[sop]\nname = 7\n')
    const { code, out, err } = await sop('list')
    expect(code).toBe(0)
    expect(out).not.toContain('daily-digest')
    expect(err).toContain('1 folder has errors and is left out: sluice sop validate')
  })
})

describe('sluice sop validate', () => {
  test('accepts the examples', async () => {
    const { code, out } = await sop('validate')
    expect(out).toContain('3 procedures in ')
    expect(out).not.toContain('warning')
    expect(code).toBe(0)
  })

  test('refuses triggers that never fire or that take messages from the agent', async () => {
    const file = join(dataDir, 'sops/deploy-with-approval/SOP.toml')
    const text = readFileSync(file, 'utf8')
    for (const [path, says] of [
      ['/pair', 'would never fire'],
      ['/webhook', '[sop] take_over = true'],
      ['/chatapp', '[sop] take_over = true'],
    ] as const) {
      writeFileSync(file, text.replace('"/deploy"', `"${path}"`))
      const { code, out } = await sop('validate')
      expect(code).toBe(1)
      expect(out).toContain(says)
    }
    writeFileSync(join(dataDir, 'config.toml'), '[sop]\ntake_over = true\n')
    expect((await sop('validate')).code).toBe(0)
  })

  test('names file, line and column of each error, and exits with 1', async () => {
    const file = join(dataDir, 'sops/daily-digest/SOP.toml')
    writeFileSync(file, '[sop]\nname = "x"\ndescription = "y"\nexecution_mod = "auto"\n')
    const { code, out } = await sop('validate')
    expect(code).toBe(1)
    expect(out).toContain(`${file}:4:1: error:`)
    expect(out).toContain('execution_mode')
    const { value } = await json('validate')
    expect(value).toMatchObject({ ok: false, loaded: 2, broken: 1, problems: [{ file, line: 4, column: 1, severity: 'error' }] })
  })
})

describe('sluice sop waiting, accept and adopt', () => {
  const inWorkspace = join('workspace', 'sops', 'theirs')
  const arrange = (steps = '1. **One** - do it') => {
    mkdirSync(join(dataDir, inWorkspace), { recursive: true })
    writeFileSync(join(dataDir, inWorkspace, 'SOP.toml'), '[sop]\nname = "theirs"\ndescription = "x"\n')
    writeFileSync(join(dataDir, inWorkspace, 'SOP.md'), `## Steps\n${steps}\n`)
  }
  const loaded = async () => (await json('list')).value.map(({ name }: { name: string }) => name)

  test('load a procedure of the workspace once its hash is accepted, until it changes', async () => {
    arrange()
    expect(await loaded()).not.toContain('theirs')
    expect((await sop('list')).err).toContain('not loaded until an operator accepts them: 1')
    const shown = await sop('waiting', 'theirs')
    expect(shown.out).toContain('1. **One** - do it')
    const [, hash = ''] = /sluice sop accept theirs ([0-9a-f]{64})$/m.exec(shown.out) ?? []
    expect(await sop('accept', 'theirs', '0'.repeat(64))).toMatchObject({
      code: 1,
      err: expect.stringContaining('not the one that was shown'),
    })
    expect(await sop('accept', 'theirs', hash.slice(0, 16))).toMatchObject({ code: 2, err: expect.stringContaining('not a whole SHA-256') })
    expect((await sop('accept', 'theirs', '')).code).toBe(2)
    expect((await sop('accept', 'theirs', hash)).code).toBe(0)
    expect(await loaded()).toContain('theirs')
    arrange('1. **Another** - do it')
    expect(await loaded()).not.toContain('theirs')
    expect((await json('waiting')).value).toMatchObject([{ changed: true }])
    expect(await sop('accept', 'theirs', hash), 'the accepted hash is not the current one').toMatchObject({ code: 1 })
  })

  test('move accepted procedures out of the workspace, and no other file', async () => {
    arrange()
    expect(await sop('adopt')).toMatchObject({ out: 'there is nothing to adopt\n', err: expect.stringContaining('accept it first') })
    const [{ hash }] = (await json('waiting')).value
    await sop('accept', 'theirs', hash)
    writeFileSync(join(dataDir, inWorkspace, 'notes.txt'), 'stays')
    expect((await json('adopt')).value).toEqual({ adopted: [join(dataDir, 'sops/theirs')], waiting: [] })
    expect(await loaded()).toContain('theirs')
    expect(readdirSync(join(dataDir, inWorkspace))).toEqual(['notes.txt'])
    expect((await json('adopt')).value).toEqual({ adopted: [], waiting: [] })
  })

  test('refuse an unknown folder, and print when none waits', async () => {
    expect(await sop('waiting', 'nothing')).toMatchObject({ code: 1, err: expect.stringContaining('waits') })
    expect((await sop('waiting')).out).toBe('no procedure waits for an operator\n')
  })
})

describe('sluice sop show', () => {
  test('prints which steps wait for a person, and why', async () => {
    const { out } = await sop('show', 'deploy-with-approval')
    expect(out).toContain('2. Approve the release (waits for a person: checkpoint)')
    expect(out).toContain('tools: file_write')
    const { value } = await json('show', 'deploy-with-approval')
    expect(value.steps.map(({ waits }: { waits: string | null }) => waits)).toEqual([null, 'checkpoint', null])
  })

  test('escapes control characters, also in titles', async () => {
    writeFileSync(join(dataDir, 'sops/deploy-with-approval/SOP.md'), '## Steps\n1. **A \u001b[31m** - b \u001b[2J\n   - tools: file_list\n')
    const { out } = await sop('show', 'deploy-with-approval')
    expect(out).toContain('1. A \\u001b[31m')
    expect(out).not.toContain('\u001b[31m')
    expect(out).not.toContain('\u001b[2J')
  })

  test('names the nearest name for an unknown one', async () => {
    const { code, err } = await sop('show', 'deploy-with-aproval')
    expect(code).toBe(1)
    expect(err).toContain('is it "deploy-with-approval"?')
  })
})

describe('sluice sop run', () => {
  test('stores the run for the daemon, and says that no daemon is running', async () => {
    const { code, out, err } = await sop('run', 'deploy-with-approval', '--payload', '{"release":"v1"}')
    expect(code).toBe(0)
    expect(err).toContain('no daemon is running')
    const runId = /run (\S+)/.exec(out)?.[1] ?? ''
    expect((await json('status', runId)).value).toMatchObject({
      run_id: runId,
      sop: 'deploy-with-approval',
      status: 'running',
      step: 1,
      event: { source: 'manual', payload: '{"release":"v1"}', by: expect.stringMatching(/^cli:/) },
    })
  })

  test('reads its payload from standard input', async () => {
    const ran = await sluiceWith([], piped('{"from":"a pipe"}'))(
      'sop',
      'run',
      'deploy-with-approval',
      '--payload',
      '-',
      '--json',
      '--data-dir',
      dataDir,
    )
    expect(JSON.parse(ran.out)).toMatchObject({ event: { payload: '{"from":"a pipe"}' } })
  })

  test('names the limit that holds a run back', async () => {
    await sop('run', 'deploy-with-approval')
    const { code, out } = await sop('run', 'deploy-with-approval')
    expect(code).toBe(0)
    expect(out).toMatch(/^run \S+ waits: too many runs of this procedure \(max_concurrent = 1\)/)
  })

  test('refuses a payload that is too large', async () => {
    const { code, err } = await sop('run', 'deploy-with-approval', '--payload', 'x'.repeat(70_000))
    expect(code).toBe(2)
    expect(err).toContain('65536 bytes')
  })
})

describe('sluice sop runs', () => {
  test('lists, shows and cancels', async () => {
    await sop('run', 'deploy-with-approval')
    const { value } = await json('runs')
    expect(value).toHaveLength(1)
    const [{ run_id: runId }] = value
    expect((await sop('runs', '--active')).out).toContain(runId)
    expect((await sop('cancel', runId, 'not today')).out).toContain('is cancelled')
    expect((await json('status', runId)).value).toMatchObject({ status: 'cancelled', reason: expect.stringContaining('not today') })
    expect((await json('runs', '--active')).value).toEqual([])
    expect((await sop('cancel', runId)).err).toContain('it is cancelled')
  })

  test('reports an unknown run', async () => {
    expect(await sop('status', 'nope')).toMatchObject({ code: 1, err: expect.stringContaining('There is no run nope') })
  })
})

describe('sluice sop audit', () => {
  test('prints the records and that none was changed', async () => {
    await sop('run', 'deploy-with-approval')
    const { code, out } = await sop('audit')
    expect(code).toBe(0)
    expect(out).toMatch(/run_started\s+deploy-with-approval/)
    expect(out).toContain('1 records, none changed, missing or inserted')
  })

  test('prints the write to a device', async () => {
    const detail = { device: 'board_a0', tool: 'gpio_write', client: 'device-1', turn: 't1', pins: [2], pin: 2, value: 1 }
    const record = { kind: 'device_write', atMs: 0, sop: '', run: null, step: null, by: 'turn:t1', reason: null, detail } as const
    await withStore(({ sops }) => sops.record([record]))
    expect((await sop('audit')).out).toContain('board_a0 gpio_write pins=[2] pin=2 value=1')
  })

  test('finds a changed record and exits with 1', async () => {
    await sop('run', 'deploy-with-approval')
    const db = new DatabaseSync(join(dataDir, 'sluice.db'))
    for (const { name } of db.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'sop_audit'").all())
      db.exec(`DROP TRIGGER ${String(name)}`)
    db.exec("UPDATE sop_audit SET reason = 'nothing happened'")
    db.close()
    const { code, err } = await sop('audit')
    expect(code).toBe(1)
    expect(err).toContain('record 1')
    expect((await json('audit')).value).toMatchObject({ ok: false, broken: { number: 1 } })
  })
})

describe('sluice sop simulate', () => {
  const event = (content: unknown): string => {
    const file = join(dataDir, 'event.json')
    writeFileSync(file, JSON.stringify(content))
    return file
  }

  test('prints triggers, conditions, steps and costs, and changes nothing', async () => {
    mkdirSync(join(dataDir, 'before'))
    const file = event({ source: 'webhook', topic: '/deploy', payload: { release: 'v3' } })
    const { code, out } = await sop('simulate', '--event', file)
    expect(code).toBe(0)
    expect(out).toContain('matches webhook:/deploy when $.release != ""')
    expect(out).toContain('2. Approve the release: waits for a person (checkpoint)')
    expect(out).toContain('no model calls')
    expect((await json('runs')).value).toEqual([])
    await withStore(async ({ sops }) => expect((await sops.verify()).records).toBe(0))
  })

  test('says why an event starts no procedure', async () => {
    const file = event({ source: 'webhook', topic: '/deploy', payload: { release: '' } })
    expect((await sop('simulate', '--event', file)).out).toContain('no procedure of 3 is triggered')
    const { out } = await sop('simulate', 'deploy-with-approval', '--event', file)
    expect(out).toContain('does not match webhook:/deploy when $.release != "": its condition does not hold')
  })

  test.each([
    ['a missing event', undefined, '--event <file>'],
    ['a missing file', '/nowhere/event.json', 'cannot be read'],
  ])('reports %s', async (_, file, message) => {
    const { code, err } = await sop('simulate', ...(file === undefined ? [] : ['--event', file]))
    expect(code).toBeGreaterThan(0)
    expect(err).toContain(message)
  })

  test('refuses a file without an event and prints an example', async () => {
    const { err } = await sop('simulate', '--event', event({ kind: 'webhook' }))
    expect(err).toContain('an event looks like {"source"')
  })

  test('computes costs from the prices of the models', async () => {
    writeFileSync(
      join(dataDir, 'config.toml'),
      '[provider]\nkind = "openai"\nmodel = "m"\napi_key = "k"\n[cost.prices.m]\ninput = 1\noutput = 2\n',
    )
    const { value } = await json('simulate', 'daily-digest', '--event', event({ source: 'manual', topic: 'daily-digest' }))
    expect(value[0].cost).toMatchObject({ modelCalls: { min: 2, max: 200 }, usd: { max: 4 } })
  })
})
