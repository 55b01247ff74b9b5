import { type Policy, type SpawnRequest, STANDINGS, type Standing, type Tool } from '@sluice/sdk'
import { openPolicy, testHost } from '@sluice/testkit/host'
import { effort } from '@sluice/testkit/random'
import { toolContext } from '@sluice/testkit/tool'
import fc from 'fast-check'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { checkScript } from './check-script.ts'
import { shellSection } from './config.ts'
import feature from './index.ts'

const SCRIPTS = [
  'echo $HOME > out.txt',
  'for f in *.md; do wc -l "$f"; done',
  'cat <<EOF | sort\nb\na\nEOF',
  'x=$(date +%s); test -n "$x" && echo $((x + 1))',
  'sleep 1 & wait',
  '(cd src && ls)',
  'diff <(ls a) <(ls b)',
  "echo 'not closed",
  'curl -s https://example.org | jq . >> ~/.config/out.json',
]
/** Scripts such as the shell blocks of public skills: one for each reason why `splitCommand` refuses it as a plain command. */
const REFUSED_AS_PLAIN = [
  'curl -H "Authorization: Bearer $TOKEN" https://api.example.org/v1/items',
  'VERSION=$(git describe --tags); echo "$VERSION"',
  'echo `date`',
  'printf done > report.txt',
  'jq . < in.json >> out.json 2>&1',
  "cat > notes.md <<'EOF'\n# Notes\n- one\nEOF",
  'python3 - <<PY\nprint(1)\nPY',
  'server --port 8080 &\nsleep 1\nkill %1',
  '(cd app && npm test) || { echo failed; exit 1; }',
  'if [ -f .env ]; then . ./.env; else echo none; fi',
  'while read -r line; do echo "$line"; done < list.txt',
  'for id in 1 2 3; do curl -s "https://example.org/$id"; done',
  'case "$1" in start) run;; *) echo usage;; esac',
  'build() { make "$@"; }; build all',
  'set -euo pipefail\ntrap cleanup EXIT\necho {1..3} ~/x "$HOME/y"',
  'diff <(sort a) <(sort b)',
  'tool --query \'{"a": "b"}\' \\\n  --limit 5 # at most five',
  'ls !(*.log)',
]
const SUPERVISED = { ...openPolicy, shell: 'script', level: 'supervised', allowed_commands: ['ls', 'cat'] } as const

function arrange(policy: Partial<Policy>, { confines = true, standing = 'operator' }: { confines?: boolean; standing?: Standing } = {}) {
  const requests: SpawnRequest[] = []
  const host = testHost({
    policy: { ...SUPERVISED, ...policy },
    confines: () => confines,
    spawn: async (request) => {
      requests.push(request)
      return { exitCode: 0, signal: null, timedOut: false, stdout: 'done', stderr: '', truncated: false, sandbox: 'jail' }
    },
  })
  const tool = (feature.build(host, v.parse(shellSection.schema, {})).tools ?? [])[0] as Tool
  const { by } = host
  const run = async (command: string) => tool.run(v.parse(tool.input, { command }), { ...toolContext(undefined, by), standing })
  const precheck = async (command: string) => tool.precheck?.({ command }, { ...by, standing, signal: new AbortController().signal })
  const risk = (command: string) => (typeof tool.risk === 'function' ? tool.risk({ command }, by) : tool.risk)
  const asks = (command: string) => typeof tool.alwaysAsks === 'function' && tool.alwaysAsks({ command }, by)
  const decider = (command: string) => typeof tool.decider === 'function' && tool.decider({ command }, { ...by, standing })
  return { run, precheck, risk, asks, decider, requests }
}

describe('script mode', () => {
  test.each(SCRIPTS)('takes %j in a sandbox as a whole, and a person is asked about it', async (command) => {
    const { run, precheck, risk, asks, decider, requests } = arrange({})
    await precheck(command)
    expect([risk(command), asks(command), decider(command)]).toEqual(['execute', false, 'asker'])
    expect(await run(command)).toBe('done\n[exit code 0]')
    expect(requests[0]).toMatchObject({ file: 'bash', args: ['-c', command] })
  })

  test.each(REFUSED_AS_PLAIN)('takes %j, which is not a plain command', async (command) => {
    const { run, precheck, requests } = arrange({})
    await precheck(command)
    await run(command)
    expect(requests[0]).toMatchObject({ args: ['-c', command] })
  })

  test('takes every text in a sandbox, which hides the forbidden paths outside of the workspace', () => {
    const by = { ...testHost().by, policy: { ...SUPERVISED, forbidden_paths: ['/etc', '/root', '~/.ssh'] } }
    const check = (script: string) => checkScript(script, by, { confines: true, shown: [] })
    const piece = fc.oneof(
      fc.constantFrom(
        ...SCRIPTS,
        ...REFUSED_AS_PLAIN,
        'cat /etc/hosts',
        'ls ~/.ssh/*',
        'cd /root',
        '# words',
        "$'\\n'",
        '../../etc/passwd',
      ),
      fc.string({ unit: 'grapheme-ascii', maxLength: 40 }),
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), fc.constantFrom('\n', ' && ', ' | ', '; '), (pieces, between) =>
        check(pieces.join(between)),
      ),
      { numRuns: effort(1000) },
    )
    expect(() => check('echo \0')).toThrow('NUL')
  })

  test('a command that only reads is run by the shell whose rules have judged it', async () => {
    const { run, risk, requests } = arrange({})
    await run('ls')
    expect([risk('ls'), requests[0]?.file]).toEqual(['read', 'sh'])
  })

  test('level full takes scripts without a sandbox, and only an operator decides them elsewhere', async () => {
    const { run, decider } = arrange({ level: 'full' }, { confines: false })
    expect([await run('echo $HOME'), decider('echo $HOME')]).toEqual(['done\n[exit code 0]', 'operator'])
    const plain = arrange({}, { confines: false })
    for (const command of SCRIPTS) await expect(plain.precheck(command)).rejects.toThrow(/no sandbox|no program|allow|Scripts run only/)
    await expect(plain.run('echo $HOME')).rejects.toThrow('Scripts run only while a sandbox works')
    expect(plain.requests).toEqual([])
  })

  test('plain mode takes none of them', async () => {
    const { precheck } = arrange({ shell: 'plain' })
    for (const command of SCRIPTS) await expect(precheck(command)).rejects.toMatchObject({ code: 'forbidden' })
  })

  test.each(STANDINGS)('a principal with the standing %s gives scripts only from listed on', async (standing) => {
    const isTaken = !['stranger', 'unverified'].includes(standing)
    for (const policy of [{}, { level: 'full' }] as const) {
      const { run, requests } = arrange(policy, { standing })
      const outcome = await run('echo $HOME').catch((error: Error) => error.message)
      expect(outcome).toMatch(isTaken ? /^done/ : /Scripts of unknown senders do not run/)
      expect(requests.length > 0).toBe(isTaken)
    }
  })

  test('a plain command of a stranger keeps the rules of plain commands', async () => {
    const { run, decider, requests } = arrange({ auto_approve: ['shell'] }, { standing: 'stranger' })
    await expect(run('make')).rejects.toThrow('not in allowed_commands')
    expect([decider('cat --unknown x'), decider('ls')]).toEqual(['operator', 'asker'])
    await run('ls -l')
    expect(requests.map(({ file }) => file)).toEqual(['sh'])
  })

  test('a script may not name a forbidden path that the sandbox would show', async () => {
    const { run } = arrange({ forbidden_paths: ['/workspace/private', '~/.ssh', '/proc'] })
    await expect(run('cat < private/key')).rejects.toThrow("'private/key' touches a path in forbidden_paths")
    await expect(run('x=1; cat "/workspace/private/a"')).rejects.toThrow('forbidden_paths')
    expect(await run('ls ~/.ssh /proc/self $HOME')).toContain('done')
    const open = arrange({ level: 'full', forbidden_paths: ['/etc/shadow'] }, { confines: false })
    await expect(open.run('x=$(cat /etc/shadow)')).rejects.toThrow("'/etc/shadow' touches")
  })
})
