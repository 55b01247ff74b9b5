import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import offline from '@sluice/provider-offline'
import { checkProcedures } from '@sluice/runtime/doctor'
import { startRuns } from '@sluice/testkit/store-rules/sop-samples'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type OpenRuntime, openRuntime } from './open-runtime.ts'

let folder: string
const open: OpenRuntime[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'doctor-'))
})
afterEach(async () => {
  for (const runtime of open.splice(0)) await runtime.close(0)
  rmSync(folder, { recursive: true })
})

async function arrange(config = ''): Promise<OpenRuntime> {
  writeFileSync(join(folder, 'config.toml'), config)
  const runtime = await openRuntime({
    features: [offline],
    configFile: join(folder, 'config.toml'),
    dataDir: folder,
    env: {},
    profile: 'test',
    version: '0.0.0',
    quiet: true,
  })
  open.push(runtime)
  return runtime
}

function sop(name: string, toml: string, md: string): void {
  mkdirSync(join(folder, 'sops', name), { recursive: true })
  writeFileSync(join(folder, 'sops', name, 'SOP.toml'), toml)
  writeFileSync(join(folder, 'sops', name, 'SOP.md'), md)
}

const GOOD = '[sop]\nname = "good"\ndescription = "fine"\n[[triggers]]\ntype = "manual"\n'
const STEPS = '## Steps\n\n1. **Look** - around\n'

describe('checkProcedures', () => {
  test('passes without procedures', async () => {
    expect(await checkProcedures(await arrange())).toMatchObject([
      { check: 'procedures', status: 'ok', detail: expect.stringContaining('0 in ') },
      { check: 'audit log', status: 'ok', detail: '0 records, none changed, missing or inserted' },
    ])
  })

  test('warns about a trigger that takes the messages of a channel and names no role', async () => {
    const trigger = `${GOOD}[[triggers]]\ntype = "webhook"\npath = "/chatapp"\n`
    const warning = { check: 'procedures', status: 'warn', detail: expect.stringContaining('only messages of operators start it') }
    sop('good', trigger, STEPS)
    const config = '[sop]\ntake_over = true\n'
    expect(await checkProcedures(await arrange(config))).toContainEqual(expect.objectContaining(warning))
    sop('good', `${trigger}role = "listed"\n`, STEPS)
    expect(await checkProcedures(await arrange(config))).not.toContainEqual(expect.objectContaining(warning))
    sop('good', trigger.replace('chatapp', 'deploy'), STEPS)
    expect(await checkProcedures(await arrange(config))).not.toContainEqual(expect.objectContaining(warning))
  })

  test('warns about a webhook trigger whose secret is not set', async () => {
    sop('good', `${GOOD}[[triggers]]\ntype = "webhook"\npath = "/github"\nauth = "github"\nsecret = "hub"\n`, STEPS)
    const warning = { check: 'procedures', status: 'warn', fix: 'sluice config set sop.secrets.hub' }
    expect(await checkProcedures(await arrange())).toContainEqual(expect.objectContaining(warning))
    expect(await checkProcedures(await arrange('[sop.secrets]\nhub = "x"\n'))).not.toContainEqual(expect.objectContaining(warning))
  })

  test('fails each invalid definition with its file and line', async () => {
    sop('good', GOOD, STEPS)
    sop('bad', '[sop]\nname = "bad"\ndescription = "x"\npriority = "urgent"\n', STEPS)
    const checks = await checkProcedures(await arrange())
    expect(checks[0]).toMatchObject({ check: 'procedures', status: 'fail', fix: 'sluice sop validate' })
    expect(checks[0]?.detail).toContain('SOP.toml:4')
  })

  test('warns while no chat is configured for approvals', async () => {
    sop('good', GOOD, STEPS)
    expect(await checkProcedures(await arrange())).toMatchObject([{}, { check: 'approvals', status: 'warn' }, {}])
    const runtime = await arrange('[approvals]\nchannels = ["messenger"]\n')
    expect(await checkProcedures(runtime)).toMatchObject([
      {},
      { check: 'approvals', status: 'ok', detail: 'operators are asked on messenger' },
      {},
    ])
  })

  test('fails a changed record of the audit log', async () => {
    const runtime = await arrange()
    await startRuns(runtime.store, ['run-1'])
    const db = new DatabaseSync(join(folder, 'sluice.db'))
    for (const { name } of db.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'sop_audit'").all())
      db.exec(`DROP TRIGGER ${String(name)}`)
    db.exec('UPDATE sop_audit SET "by" = \'another client\' WHERE number = 1')
    db.close()
    expect((await checkProcedures(runtime)).at(-1)).toMatchObject({
      check: 'audit log',
      status: 'fail',
      detail: expect.stringMatching(/^record 1: /),
    })
  })
})
