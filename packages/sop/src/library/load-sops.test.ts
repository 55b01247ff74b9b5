import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { loadSops } from './load-sops.ts'
import { SOP_FILE_BYTES_MAX } from './sop-pair.ts'

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
  const lines = problems.map(({ file, line, column, message, severity }) =>
    [severity === 'warning' ? 'warning' : [], relative(base, file), line ?? [], column ?? [], ` ${message}`].flat().join(':'),
  )
  return { definitions, lines, broken }
}

describe('the procedures of a folder', () => {
  test('are the inner folders with a SOP.toml, sorted by name', async () => {
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
    const { definitions, lines, broken } = await load()
    expect([lines, broken]).toEqual([[], 0])
    expect(definitions.map(({ name, mode }) => [name, mode])).toEqual([
      ['alpha', 'supervised'],
      ['zeta', 'auto'],
    ])
    expect(definitions[0]).toEqual({
      name: 'alpha',
      description: 'What it does',
      version: '0.1.0',
      agent: 'main',
      priority: 'normal',
      mode: 'supervised',
      cooldownSecs: 0,
      maxConcurrent: 1,
      maxWaiting: 100,
      countWaiting: true,
      triggers: [{ type: 'manual' }],
      steps: [
        { number: 1, title: 'One', body: 'do it', tools: null, requiresConfirmation: false, kind: 'execute', input: null, output: null },
      ],
      folder: join(folder, 'b'),
    })
  })

  test('are an empty list when the folder is missing', async () => {
    await rm(folder, { recursive: true })
    expect(await load()).toEqual({ definitions: [], lines: [], broken: 0 })
    await writeFile(folder, 'a file')
    expect(await load()).toEqual({ definitions: [], lines: ['sops: this folder cannot be read (ENOTDIR)'], broken: 1 })
  })

  test('are loaded in spite of broken ones among them', async () => {
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
    const { definitions, lines, broken } = await load()
    expect(definitions.map(({ name }) => name)).toEqual(['good'])
    expect(broken).toBe(4)
    expect(lines).toEqual([
      'sops/bad-md/SOP.md:2:1: this is step 2; the next step is number 1',
      'sops/bad-toml/SOP.toml:1:2: `sop.description` is missing; it must be a string',
      'sops/bad-toml/SOP.toml:2:8: `sop.name` must be a string that is not empty; got 7',
      'sops/bad-toml/SOP.md:3:9: `kind` must be execute or checkpoint; got "x"',
      'sops/no-md/SOP.md: this file is missing',
      'sops/no-toml/SOP.toml: this file is missing',
    ])
  })

  test('are rejected when two share a name', async () => {
    await write({
      'a/SOP.toml': head('same'),
      'a/SOP.md': STEPS,
      'b/SOP.toml': `\n${head('same')}`,
      'b/SOP.md': STEPS,
      'c/SOP.toml': head('Same'),
      'c/SOP.md': STEPS,
    })
    const { definitions, lines, broken } = await load()
    expect([definitions.map(({ name }) => name), broken]).toEqual([['Same'], 2])
    expect(lines).toEqual([
      `sops/a/SOP.toml:2:8: "same" is also the name of the procedure in ${join(folder, 'b')}; neither is loaded`,
      `sops/b/SOP.toml:3:8: "same" is also the name of the procedure in ${join(folder, 'a')}; neither is loaded`,
    ])
  })

  test('are loaded in spite of warnings', async () => {
    await write({
      'a/SOP.toml': '[sop]\nname = "a"\ndescription = " "\nmax_concurrent = 0\nexecution_mode = "auto"\ndeterministic = true\n',
      'a/SOP.md': '## Steps\n1. **One**\n- tools: shell\n2. **Wait**\n- kind: checkpoint\n- requires_confirmation: true\n',
      'b/SOP.toml': head('b'),
      'b/SOP.md': '## Steps\n1. **One**\n- input: {}\n',
      'c/SOP.toml': head('c'),
      'c/SOP.md': '## Steps\n1. **Wait**\n- kind: checkpoint\n',
    })
    const { definitions, lines, broken } = await load()
    expect([definitions.map(({ name, mode }) => [name, mode]), broken]).toEqual([
      [
        ['a', 'deterministic'],
        ['b', 'supervised'],
        ['c', 'supervised'],
      ],
      0,
    ])
    expect(lines.toSorted()).toEqual([
      'warning:sops/a/SOP.toml: there are no triggers, so it can only be started by hand',
      'warning:sops/a/SOP.toml:3:15: `sop.description` is empty',
      'warning:sops/a/SOP.toml:4:18: `sop.max_concurrent` is 0, so it can never start',
      'warning:sops/a/SOP.toml:5:18: `sop.execution_mode` is not used, since `sop.deterministic` is true',
      'warning:sops/b/SOP.md:2:1: the input of step 1 is only used in deterministic mode',
      'warning:sops/c/SOP.md: every step is a checkpoint, so each run does nothing and fails',
    ])
  })

  test('are checked by the rules of deterministic mode', async () => {
    await write({
      'a/SOP.toml': head('a', 'execution_mode = "deterministic"\n'),
      'a/SOP.md': '## Steps\n1. **One**\n2. **Two**\n- tools: a, b\n3. **Three**\n- tools: a\n- requires_confirmation: true\n',
    })
    expect(await load()).toMatchObject({
      definitions: [],
      lines: [
        'sops/a/SOP.md:2:1: step 1 must name exactly one tool, because the mode is deterministic',
        'sops/a/SOP.md:3:1: step 2 must name exactly one tool, because the mode is deterministic',
        'sops/a/SOP.md:5:1: step 3 cannot require confirmation: in deterministic mode only steps of `kind: checkpoint` wait',
      ],
    })
  })
})

describe('reading files', () => {
  test('follows links inside the folder and refuses links that leave it', async () => {
    await mkdir(join(base, 'outside'))
    await writeFile(join(base, 'outside', 'SOP.toml'), head('secret'))
    await writeFile(join(base, 'outside', 'SOP.md'), STEPS)
    await write({ 'real/v1/SOP.toml': head('linked'), 'real/v1/SOP.md': STEPS, 'mixed/SOP.toml': head('mixed') })
    await symlink(join(base, 'outside'), join(folder, 'evil'))
    await symlink(join(folder, 'real', 'v1'), join(folder, 'good'))
    await symlink(join(base, 'outside', 'SOP.md'), join(folder, 'mixed', 'SOP.md'))
    await symlink('loop', join(folder, 'loop'))
    const { definitions, lines } = await load()
    expect(definitions.map(({ name }) => name)).toEqual(['linked'])
    expect(lines).toEqual([
      'sops/evil/SOP.toml: this links to a file outside of the folder',
      'sops/evil/SOP.md: this links to a file outside of the folder',
      'sops/loop/SOP.toml: this file cannot be read (ELOOP)',
      'sops/loop/SOP.md: this file cannot be read (ELOOP)',
      'sops/mixed/SOP.md: this links to a file outside of the folder',
    ])
  })

  test('follows a link to the folder itself', async () => {
    await write({ 'a/SOP.toml': head('a'), 'a/SOP.md': STEPS })
    await symlink(folder, join(base, 'linked'))
    folder = join(base, 'linked')
    expect((await load()).definitions.map((definition) => definition.folder)).toEqual([join(base, 'linked', 'a')])
  })

  test('refuses large files, binary files and non-files', async () => {
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
    expect((await load()).lines).toEqual([
      'sops/binary/SOP.md: this file is not UTF-8',
      'sops/dir/SOP.md: this is not a regular file',
      `sops/large/SOP.md: this file has ${SOP_FILE_BYTES_MAX + 1} bytes; the limit is ${SOP_FILE_BYTES_MAX}`,
      'sops/pipe/SOP.md: this is not a regular file',
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

  test('wait until an operator agrees to their exact content', async () => {
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
    expect((await loadBoth(agreed)).waiting, 'an agreement covers one folder').toMatchObject([{ folder: at(WORKSPACE, 'copy') }])
  })

  test('do not replace a procedure of the same name, and cause no errors', async () => {
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

test('a trigger on a forbidden path is an error with its position', async () => {
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

test('an agent that does not exist is an error with its position', async () => {
  const load = async (agent: string) => {
    await write({ 'a/SOP.toml': head('a').replace('[sop]\n', `[sop]\nagent = "${agent}"\n`), 'a/SOP.md': STEPS })
    return loadSops({
      sources: [{ folder, isAgentWritable: false }],
      agreed: new Map(),
      defaultMode: 'auto',
      nowMs: 0,
      agentProblem: (name) => (name === 'support' ? undefined : `there is no agent "${name}"`),
    })
  }
  expect(await load('suport')).toMatchObject({
    definitions: [],
    problems: [{ line: expect.any(Number), message: expect.stringContaining('no agent "suport"') }],
  })
  expect((await load('support')).definitions).toMatchObject([{ name: 'a', agent: 'support' }])
})
