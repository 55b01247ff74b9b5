import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SOP_FILE_BYTES_MAX } from './load-sop.ts'
import { loadSops } from './load-sops.ts'

let base: string
let folder: string
beforeEach(async () => {
  base = await realpath(await mkdtemp(join(tmpdir(), 'sops-')))
  folder = join(base, 'sops')
  await mkdir(folder)
})
afterEach(() => rm(base, { recursive: true, force: true }))

const head = (name: string, more = '') => `[sop]\nname = "${name}"\ndescription = "What it does"\n${more}[[triggers]]\ntype = "manual"\n`
const STEPS = '## Steps\n1. **One** - do it\n'

async function write(files: Readonly<Record<string, string | Uint8Array>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), text)
  }
}

async function load() {
  const { definitions, problems, broken } = await loadSops({
    sources: [{ folder, isAgentWritable: false }],
    agreed: new Map(),
    defaultMode: 'supervised',
    nowMs: Date.UTC(2026, 2, 1),
  })
  const told = problems.map(({ file, line, column, message, severity }) =>
    [severity === 'warning' ? 'warning' : [], relative(base, file), line ?? [], column ?? [], ` ${message}`].flat().join(':'),
  )
  return { definitions, told, broken }
}

describe('§4.3 the procedures of a folder', () => {
  test('each folder with a SOP.toml is one, by name and not by folder', async () => {
    await write({
      'a/SOP.toml': head('zeta', 'execution_mode = "auto"\n'),
      'a/SOP.md': STEPS,
      'b/SOP.toml': head('alpha'),
      'b/SOP.md': STEPS,
      'b/notes.txt': 'x',
      'c/README.md': 'no procedure',
      '.git/SOP.toml': 'x',
      'SOP.toml': 'x',
      'd/e/SOP.toml': 'x',
    })
    const { definitions, told, broken } = await load()
    expect([told, broken]).toEqual([[], 0])
    expect(definitions.map(({ name, mode }) => [name, mode])).toEqual([
      ['alpha', 'supervised'],
      ['zeta', 'auto'],
    ])
    expect(definitions[0]).toEqual({
      name: 'alpha',
      description: 'What it does',
      version: '0.1.0',
      priority: 'normal',
      mode: 'supervised',
      cooldownSecs: 0,
      maxConcurrent: 1,
      triggers: [{ type: 'manual' }],
      steps: [
        { number: 1, title: 'One', body: 'do it', tools: null, requiresConfirmation: false, kind: 'execute', input: null, output: null },
      ],
      folder: join(folder, 'b'),
    })
  })

  test('without a folder there are none', async () => {
    await rm(folder, { recursive: true })
    expect(await load()).toEqual({ definitions: [], told: [], broken: 0 })
    await writeFile(folder, 'a file')
    expect(await load()).toEqual({ definitions: [], told: ['sops: this folder cannot be read (ENOTDIR)'], broken: 1 })
  })

  test('what is wrong with one does not stop another', async () => {
    await write({
      'bad-md/SOP.toml': head('bad-md'),
      'bad-md/SOP.md': '## Steps\n2. **One**\n',
      'bad-toml/SOP.toml': '[sop]\nname = 7\n',
      'bad-toml/SOP.md': '## Steps\n1. **One**\n- kind: x\n',
      'good/SOP.toml': head('good'),
      'good/SOP.md': STEPS,
      'no-md/SOP.toml': head('no-md'),
      'no-toml/SOP.md': STEPS,
    })
    const { definitions, told, broken } = await load()
    expect(definitions.map(({ name }) => name)).toEqual(['good'])
    expect(broken).toBe(4)
    expect(told).toEqual([
      'sops/bad-md/SOP.md:2:1: this is step 2; the next is number 1',
      'sops/bad-toml/SOP.toml:1:2: `sop.description` is missing; it must be a text',
      'sops/bad-toml/SOP.toml:2:8: `sop.name` must be a text that is not empty, but 7 stands there',
      'sops/bad-toml/SOP.md:3:9: `kind` must be execute or checkpoint, but "x" stands there',
      'sops/no-md/SOP.md: this file is missing',
      'sops/no-toml/SOP.toml: this file is missing',
    ])
  })

  test('of two with one name neither is loaded, and both are told', async () => {
    await write({
      'a/SOP.toml': head('same'),
      'a/SOP.md': STEPS,
      'b/SOP.toml': `\n${head('same')}`,
      'b/SOP.md': STEPS,
      'c/SOP.toml': head('Same'),
      'c/SOP.md': STEPS,
    })
    const { definitions, told, broken } = await load()
    expect([definitions.map(({ name }) => name), broken]).toEqual([['Same'], 2])
    expect(told).toEqual([
      `sops/a/SOP.toml:2:8: "same" is also the name of ${join(folder, 'b')}; none of them is loaded`,
      `sops/b/SOP.toml:3:8: "same" is also the name of ${join(folder, 'a')}; none of them is loaded`,
    ])
  })

  test('a warning keeps nothing from being loaded', async () => {
    await write({
      'a/SOP.toml': '[sop]\nname = "a"\ndescription = " "\nmax_concurrent = 0\nexecution_mode = "auto"\ndeterministic = true\n',
      'a/SOP.md': '## Steps\n1. **One**\n- tools: shell\n2. **Wait**\n- kind: checkpoint\n- requires_confirmation: true\n',
      'b/SOP.toml': head('b'),
      'b/SOP.md': '## Steps\n1. **One**\n- input: {}\n',
      'c/SOP.toml': head('c'),
      'c/SOP.md': '## Steps\n1. **Wait**\n- kind: checkpoint\n',
    })
    const { definitions, told, broken } = await load()
    expect([definitions.map(({ name, mode }) => [name, mode]), broken]).toEqual([
      [
        ['a', 'deterministic'],
        ['b', 'supervised'],
        ['c', 'supervised'],
      ],
      0,
    ])
    expect(told.toSorted()).toEqual([
      'warning:sops/a/SOP.toml: it has no triggers, so it is only started by hand',
      'warning:sops/a/SOP.toml:3:15: `sop.description` is empty',
      'warning:sops/a/SOP.toml:4:18: `sop.max_concurrent` is 0, so it can never start',
      'warning:sops/a/SOP.toml:5:18: `sop.execution_mode` is not used, since `sop.deterministic` is true',
      'warning:sops/b/SOP.md:2:1: the input of step 1 is only used in deterministic mode',
      'warning:sops/c/SOP.md: every step is a checkpoint: a run does nothing, and can only fail',
    ])
  })

  test('a deterministic step names one tool, and waits for a person only as a checkpoint', async () => {
    await write({
      'a/SOP.toml': head('a', 'execution_mode = "deterministic"\n'),
      'a/SOP.md': '## Steps\n1. **One**\n2. **Two**\n- tools: a, b\n3. **Three**\n- tools: a\n- requires_confirmation: true\n',
    })
    expect(await load()).toMatchObject({
      definitions: [],
      told: [
        'sops/a/SOP.md:2:1: step 1 must name exactly one tool, as every step in deterministic mode',
        'sops/a/SOP.md:3:1: step 2 must name exactly one tool, as every step in deterministic mode',
        'sops/a/SOP.md:5:1: step 3 would not wait: in deterministic mode only steps of `kind: checkpoint` do',
      ],
    })
  })
})

describe('what is read', () => {
  test('a link that leads out of the folder is refused, one inside of it is followed', async () => {
    await mkdir(join(base, 'outside'))
    await writeFile(join(base, 'outside', 'SOP.toml'), head('secret'))
    await writeFile(join(base, 'outside', 'SOP.md'), STEPS)
    await write({ 'real/v1/SOP.toml': head('linked'), 'real/v1/SOP.md': STEPS, 'mixed/SOP.toml': head('mixed') })
    await symlink(join(base, 'outside'), join(folder, 'evil'))
    await symlink(join(folder, 'real', 'v1'), join(folder, 'good'))
    await symlink(join(base, 'outside', 'SOP.md'), join(folder, 'mixed', 'SOP.md'))
    await symlink('loop', join(folder, 'loop'))
    const { definitions, told } = await load()
    expect(definitions.map(({ name }) => name)).toEqual(['linked'])
    expect(told).toEqual([
      'sops/evil/SOP.toml: this leads out of the folder of procedures; it is not read',
      'sops/evil/SOP.md: this leads out of the folder of procedures; it is not read',
      'sops/loop/SOP.toml: this cannot be read (ELOOP)',
      'sops/loop/SOP.md: this cannot be read (ELOOP)',
      'sops/mixed/SOP.md: this leads out of the folder of procedures; it is not read',
    ])
  })

  test('the folder itself may be a link', async () => {
    await write({ 'a/SOP.toml': head('a'), 'a/SOP.md': STEPS })
    await symlink(folder, join(base, 'linked'))
    folder = join(base, 'linked')
    expect((await load()).definitions.map((definition) => definition.folder)).toEqual([join(base, 'linked', 'a')])
  })

  test('what is too large, no text or no file is told and not read', async () => {
    await write({
      'binary/SOP.toml': head('binary'),
      'binary/SOP.md': new Uint8Array([0xff, 0xfe]),
      'dir/SOP.toml': head('dir'),
      'dir/SOP.md/x': '',
      'large/SOP.toml': head('large'),
      'large/SOP.md': 'x'.repeat(SOP_FILE_BYTES_MAX + 1),
      'pipe/SOP.toml': head('pipe'),
    })
    await promisify(execFile)('mkfifo', [join(folder, 'pipe', 'SOP.md')])
    expect((await load()).told).toEqual([
      'sops/binary/SOP.md: this is not UTF-8',
      'sops/dir/SOP.md: this is no regular file',
      `sops/large/SOP.md: this has ${SOP_FILE_BYTES_MAX + 1} bytes; at most ${SOP_FILE_BYTES_MAX} are read`,
      'sops/pipe/SOP.md: this is no regular file',
    ])
  })
})

describe('procedures in a folder that the agent can write', () => {
  const OWN = 'own'
  const WORKSPACE = 'workspace'
  const at = (source: string, name: string) => join(base, source, name)
  const put = async (source: string, name: string, steps = STEPS) => {
    await mkdir(at(source, name), { recursive: true })
    await writeFile(join(at(source, name), 'SOP.toml'), head(name))
    await writeFile(join(at(source, name), 'SOP.md'), steps)
  }
  const loadBoth = async (agreed: ReadonlyMap<string, string> = new Map()) => {
    const sources = [
      { folder: join(base, OWN), isAgentWritable: false },
      { folder: join(base, WORKSPACE), isAgentWritable: true },
    ]
    const { definitions, problems, waiting } = await loadSops({ sources, agreed, defaultMode: 'auto', nowMs: 0 })
    return { loaded: definitions.map((definition) => relative(base, definition.folder)), problems, waiting }
  }
  const hashOf = async (folder: string) => (await loadBoth()).waiting.find((sop) => sop.folder === folder)?.hash ?? ''

  test('wait until an operator agrees to exactly their content', async () => {
    await put(OWN, 'mine')
    await put(WORKSPACE, 'theirs')
    const before = await loadBoth()
    expect(before.loaded).toEqual(['own/mine'])
    expect(before.waiting).toMatchObject([{ folder: at(WORKSPACE, 'theirs'), isChanged: false, toml: head('theirs'), md: STEPS }])
    const agreed = new Map([[at(WORKSPACE, 'theirs'), await hashOf(at(WORKSPACE, 'theirs'))]])
    expect(await loadBoth(agreed)).toMatchObject({ loaded: ['own/mine', 'workspace/theirs'], waiting: [] })

    await put(WORKSPACE, 'theirs', '## Steps\n1. **Another** - do it\n')
    expect(await loadBoth(agreed)).toMatchObject({ loaded: ['own/mine'], waiting: [{ isChanged: true }] })
    await put(WORKSPACE, 'theirs')
    expect((await loadBoth(agreed)).waiting).toEqual([])
    await put(WORKSPACE, 'copy')
    expect((await loadBoth(agreed)).waiting, 'an agreement is to one folder').toMatchObject([{ folder: at(WORKSPACE, 'copy') }])
  })

  test('neither stop nor replace one of the same name elsewhere, and cause no errors while they wait', async () => {
    await put(OWN, 'deploy')
    await put(WORKSPACE, 'deploy')
    await mkdir(at(WORKSPACE, 'broken'), { recursive: true })
    await writeFile(join(at(WORKSPACE, 'broken'), 'SOP.toml'), '[sop')
    expect(await loadBoth()).toMatchObject({ loaded: ['own/deploy'], problems: [] })
    const agreed = new Map([[at(WORKSPACE, 'deploy'), await hashOf(at(WORKSPACE, 'deploy'))]])
    expect(await loadBoth(agreed)).toMatchObject({
      loaded: ['own/deploy'],
      problems: [{ severity: 'warning', message: expect.stringContaining('is loaded from') }],
    })
  })
})

test('a trigger on a path that is not allowed is an error at its place, and the procedure is not loaded', async () => {
  const toml = `${head('a')}[[triggers]]\ntype = "webhook"\npath = "/taken"\n`
  await write({ 'a/SOP.toml': toml, 'a/SOP.md': STEPS })
  const { definitions, problems } = await loadSops({
    sources: [{ folder, isAgentWritable: false }],
    agreed: new Map(),
    defaultMode: 'auto',
    nowMs: 0,
    pathProblem: (path) => (path === '/taken' ? 'it is taken' : undefined),
  })
  expect(definitions).toEqual([])
  expect(problems).toMatchObject([{ line: 8, message: expect.stringContaining('it is taken'), severity: 'error' }])
})
