/** Saves of a procedure: one after another, whole after a crash, and only where the agent cannot write. */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testHost } from '@sluice/testkit/host'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { contentHash } from './agreements.ts'
import { ProcedureFiles } from './procedure-files.ts'

let root: string
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'procedures-')))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const files = ({ isAgentWritable = false } = {}) =>
  new ProcedureFiles({
    settings: () => ({ sources: [{ folder: root, isAgentWritable }], defaultMode: 'auto' }),
    keyValue: memoryKeyValue(),
    clock: testHost().clock,
  })
const tomlOf = (text: string, name = 'deploy') =>
  `[sop]\nname = "${name}"\ndescription = "${text}"\nversion = "1.0.0"\n[[triggers]]\ntype = "manual"\n`
const mdOf = (text: string) => `# Deploy\n\n## Steps\n\n1. **Go** - ${text}\n`
const save = (text: string, version: string | null) => ({ folder: 'deploy', toml: tomlOf(text), md: mdOf(text), version })
const at = (name: string) => join(root, 'deploy', name)
const onDisk = () => ['SOP.toml', 'SOP.md'].map((name) => /one|two|three/.exec(readFileSync(at(name), 'utf8'))?.[0])

describe('a save', () => {
  test('wins over every other at the same version, and the others are conflicts', async () => {
    const procedures = files()
    for (let round = 0; round < 10; round += 1) {
      rmSync(join(root, 'deploy'), { recursive: true, force: true })
      const version = await procedures.write(save('one', null))
      const saves = await Promise.allSettled([procedures.write(save('two', version)), procedures.write(save('three', version))])
      expect(saves).toMatchObject([{ status: 'fulfilled' }, { status: 'rejected', reason: { code: 'conflict' } }])
      expect(onDisk()).toEqual(['two', 'two'])
      expect(readdirSync(join(root, 'deploy')).sort()).toEqual(['SOP.md', 'SOP.toml'])
    }
  })

  test('takes a name before another that takes it at the same time', async () => {
    const procedures = files()
    const saves = await Promise.allSettled([
      procedures.write(save('one', null)),
      procedures.write({ ...save('two', null), folder: 'other' }),
    ])
    expect(saves).toMatchObject([{ status: 'fulfilled' }, { status: 'rejected', reason: { code: 'invalid_request' } }])
  })

  test('keeps the mode of both files, and the files of an editor', async () => {
    const procedures = files()
    const version = await procedures.write(save('one', null))
    chmodSync(at('SOP.toml'), 0o640)
    chmodSync(at('SOP.md'), 0o664)
    writeFileSync(at('.SOP.md.swp'), '')
    await procedures.write(save('two', version))
    expect(['SOP.toml', 'SOP.md'].map((name) => statSync(at(name)).mode & 0o777)).toEqual([0o640, 0o664])
    expect(readdirSync(join(root, 'deploy'))).toContain('.SOP.md.swp')
  })

  test('that a crash cut between both files is finished at the next load', async () => {
    const procedures = files()
    await procedures.write(save('one', null))
    writeFileSync(at(`.SOP.toml.${contentHash(tomlOf('one'), mdOf('two'))}`), tomlOf('two'))
    // Before the first rename, the old pair is in force.
    expect((await procedures.read()).definitions).toMatchObject([{ description: 'one', steps: [{ body: 'one' }] }])
    writeFileSync(at('fresh'), mdOf('two'))
    renameSync(at('fresh'), at('SOP.md'))
    expect((await procedures.read()).definitions).toMatchObject([{ description: 'two', steps: [{ body: 'two' }] }])
    expect(onDisk()).toEqual(['two', 'two'])
    const { version } = await procedures.open('deploy')
    await procedures.write(save('three', version))
    expect(readdirSync(join(root, 'deploy')).sort()).toEqual(['SOP.md', 'SOP.toml'])
  })

  test('that a crash cut before the first file leaves the old pair, and nothing after the next save', async () => {
    const procedures = files()
    const version = await procedures.write(save('one', null))
    writeFileSync(at(`.SOP.toml.${contentHash(tomlOf('one'), mdOf('two'))}`), tomlOf('two'))
    writeFileSync(at(`.SOP.md.${crypto.randomUUID()}`), mdOf('two'))
    expect(await procedures.open('deploy')).toMatchObject({ toml: tomlOf('one'), md: mdOf('one'), version })
    await procedures.write(save('three', version))
    expect(readdirSync(join(root, 'deploy')).sort()).toEqual(['SOP.md', 'SOP.toml'])
  })

  test('that fails before the first file leaves no other file', async () => {
    const procedures = files()
    await procedures.write(save('one', null))
    rmSync(at('SOP.toml'))
    mkdirSync(at('SOP.toml'))
    const { version } = await procedures.open('deploy')
    await expect(procedures.write(save('two', version))).rejects.toMatchObject({ code: 'invalid_request' })
    expect(readdirSync(join(root, 'deploy')).sort()).toEqual(['SOP.md', 'SOP.toml'])
  })

  test('of a text with too many bytes is refused, whatever the number of its characters', async () => {
    const procedures = files()
    const version = await procedures.write(save('one', null))
    const large = mdOf('\u505a'.repeat(90_000))
    expect((await procedures.check('deploy', { toml: tomlOf('two'), md: large })).problems).toMatchObject([
      { file: 'SOP.md', severity: 'error', message: expect.stringMatching(/^this file has \d+ bytes; the limit is 262144$/) },
    ])
    await expect(procedures.write({ ...save('two', version), md: large })).rejects.toMatchObject({ code: 'invalid_request' })
    expect(onDisk()).toEqual(['one', 'one'])
  })

  test('replaces a file that cannot be read', async () => {
    const procedures = files()
    await procedures.write(save('one', null))
    writeFileSync(at('SOP.md'), 'x'.repeat(256 * 1024 + 1))
    const opened = await procedures.open('deploy')
    expect(opened).toMatchObject({
      toml: tomlOf('one'),
      md: '',
      unreadable: [expect.stringContaining('SOP.md: this file has 262145 bytes')],
    })
    await expect(procedures.write(save('two', null))).rejects.toMatchObject({ code: 'conflict' })
    await procedures.write(save('two', opened.version))
    expect(onDisk()).toEqual(['two', 'two'])
  })

  test('is refused where the agent can write', async () => {
    const procedures = files({ isAgentWritable: true })
    await expect(procedures.write(save('one', null))).rejects.toMatchObject({ code: 'forbidden' })
    await expect(procedures.open('deploy')).rejects.toThrow(`The agent can write ${root}`)
    expect(await procedures.read()).toMatchObject({ folder: root, editable: null })
    expect(readdirSync(root)).toEqual([])
  })
})
