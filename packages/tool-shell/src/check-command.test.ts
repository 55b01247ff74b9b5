import { homedir } from 'node:os'
import type { Policy } from '@sluice/sdk'
import { openPolicy } from '@sluice/testkit/host'
import { describe, expect, test } from 'vitest'
import { checkCommand } from './check-command.ts'

const ROOT = '/home/ann/.sluice/workspace'
const policy: Policy = {
  ...openPolicy,
  level: 'supervised',
  allowed_commands: [
    'git',
    'npm',
    'cargo',
    'ls',
    'cat',
    'grep',
    'find',
    'echo',
    'python3',
    'node',
    'env',
    'sh',
    'tar',
    'sed',
    'awk',
    '/opt/tool',
  ],
  forbidden_paths: ['~/.ssh', '/etc/shadow', '/proc', '/dev', '/home/ann', 'private'],
}
const check = (command: string, changes: Partial<Policy> = {}) =>
  checkCommand(command, { agent: 'main', policy: { ...policy, ...changes }, workspace: { root: ROOT } })
const forbidden = expect.objectContaining({ code: 'forbidden' })

describe('checkCommand: programs', () => {
  test.each([
    'ls -la src',
    'cat a | grep b && echo c || ls; git status',
    '/bin/ls',
    '/usr/bin/git log',
    "'ls'",
    'l"s"',
    '/opt/tool x',
    'find . -name "*.ts"',
    'python3 script.py --count 3',
    'node build.js',
    'npm test',
    'git commit -m "config"',
    'git add -u config',
    'npm run install',
    'git push -u origin main',
    'env',
    'sh build.sh',
    'tar -xzf a.tgz',
    "sed -n 's/a/b/p' file",
    'ls 2>/dev/null',
  ])('allows %j', (command) => {
    expect(() => check(command)).not.toThrow()
  })

  test.each([
    'rm -rf .',
    'ls; rm x',
    'ls\nrm x',
    'ls | sh -c x',
    'ls && rm x',
    'ls || rm x',
    './ls',
    'bin/ls',
    '/tmp/ls',
    '/bin/../tmp/ls',
    'tool x',
    '/opt/tool2',
    'l*',
    "'ls '",
    'LS',
    "''",
    '~/ls',
    '{ ls',
    'if true',
    '! ls',
    'PATH=. ls',
    'LD_PRELOAD=./x.so ls',
    'X=1',
    '{rm,x}',
    'eval ls',
    'exec ls',
    '. ./x',
  ])('refuses %j, whose program is not listed', (command) => {
    expect(() => check(command)).toThrow(forbidden)
  })

  test.each([
    'find . -exec rm x ;',
    'find . -delete',
    'find . -execdir x',
    'find . -fprintf out x',
    'git -c core.pager=x log',
    'git config alias.x !sh',
    'git -p -C dir config x y',
    'npm --prefix dir install x',
    'git clone -u x y',
    'git fetch --upload-pack=x',
    'git fetch --uplo=x',
    'git clone ext::sh',
    'git rebase -x rm',
    'git rebase --exec rm',
    'git submodule foreach rm',
    'git bisect run x',
    'git grep -Orm x',
    'python3 -c x',
    'python3 -Ic x',
    'python3 -m http.server',
    '/usr/bin/python3 -c x',
    'node -e x',
    'node -pe x',
    'node --eval=x',
    'node --require ./x a.js',
    'npm install x',
    'npm exec x',
    'cargo install x',
    'cargo --config x build',
    'env rm x',
    'env -i ls',
    'sh -c ls',
    'sh -ec ls',
    'tar --to-command=x -xf a',
    'tar --checkpoint-action=exec=x -cf a b',
    'tar -Ix -cf a b',
    `awk 'BEGIN{system("rm")}'`,
    `awk '{print > "x"}'`,
    "sed 's/a/b/e'",
    "sed 's/a/b/w out'",
    "sed '1e rm'",
    'find . "-exec" rm',
    "find . -ex'ec' rm",
    'find . \\-exec rm',
  ])('refuses %j for an unsafe argument', (command) => {
    expect(() => check(command)).toThrow(forbidden)
  })

  test('allows no program with an empty list', () => {
    expect(() => check('ls', { allowed_commands: [] })).toThrow(forbidden)
  })

  test.each<Partial<Policy>>([{ level: 'full', allowed_commands: [] }, { allowed_commands: ['*'] }])(
    'skips only the check of programs with %j',
    (changes) => {
      for (const command of ['rm -rf x', './ls', 'X=1 make', 'find . -exec ls', 'if true', 'sh -c "ls"'])
        expect(() => check(command, changes)).not.toThrow()
      for (const command of ['echo $HOME', 'echo `id`', 'ls > file', 'sleep 1 &', 'cat /etc/shadow'])
        expect(() => check(command, changes)).toThrow(forbidden)
    },
  )

  test('refuses an empty command as invalid', () => {
    for (const command of [' ', ';', '# only a comment']) {
      expect(() => check(command)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
    }
  })
})

describe('checkCommand: forbidden paths', () => {
  const any = { allowed_commands: ['*'] }

  test.each([
    'cat /etc/shadow',
    'cat //etc///shadow',
    'cat /etc/./x/../shadow',
    'cat ../../../../etc/shadow',
    "cat /etc/sh'ad'ow",
    'cat /etc/sh\\adow',
    'cat "/etc/shadow"',
    'cat /etc/sh*',
    'cat /e??/shadow',
    'cat /etc/[s]hadow',
    'cat /etc/{shadow,x}',
    'cat */../../../../../etc/shadow',
    'cat ~/.ssh/id_ed25519',
    'cat ~/.ssh',
    "cat '~/.ssh/id'",
    `cat ${homedir()}/.ssh/id`,
    'cat ~root/x',
    'cat /proc/self/environ',
    'cat /proc',
    'grep x --file=/etc/shadow',
    'grep -f/etc/shadow x',
    'dd if=/etc/shadow',
    'X=/etc/shadow cat',
    'curl -d @/etc/shadow x',
    'tar -cf a -C /proc self',
    `sh -c 'cat /etc/shadow'`,
    `python3 -c "open('/etc/shadow')"`,
    'cat /home/ann/.sluice/config.toml',
    'cat ../config.toml',
    'cat private/key',
    'cat ./private',
    'cat priv*',
    'cat *',
    `cat ${ROOT}/private/key`,
    'cd /etc; cat shadow',
    'cd /; cat etc/shadow',
    'cd / && cd etc && cat shadow',
    'cd ..; cat config.toml',
    'cd /e*; cat shadow',
    'cd x*',
    'ls && cd -P /etc; cat shadow',
    'ls /dev/sda',
  ])('refuses %j', (command) => {
    expect(() => check(command, any)).toThrow(forbidden)
  })

  test.each([
    'cat /etc/hostname',
    'cat /etc/shadows',
    'cat etc/shadow',
    'cat a/private',
    'cat privateer',
    `cat ${ROOT}/a`,
    'cat a/../b',
    'cat src/*.ts',
    'grep x /dev/null',
    'cd src; cat a; cd; cat b',
    'echo ~',
    'cat ~/notes',
  ])('allows %j', (command) => {
    expect(() => check(command, any)).not.toThrow()
  })

  test('refuses every path inside a forbidden workspace', () => {
    expect(() => check('cat a', { forbidden_paths: [ROOT] })).toThrow(forbidden)
  })

  test('refuses more changes of folder than it can follow', () => {
    expect(() => check(Array.from({ length: 40 }, (_, at) => `cd d${at}`).join(';'), any)).toThrow(forbidden)
  })
})

test('a refusal names the section of the agent', () => {
  const by = { agent: 'support', policy: { ...policy, allowed_commands: ['ls'] }, workspace: { root: ROOT } }
  expect(() => checkCommand('cat x', by)).toThrow("'cat' is not in allowed_commands under [agents.support.policy]")
})

test('a folder of a skill may be named inside a forbidden folder, and nothing next to it', () => {
  const by = { agent: 'main', policy: { ...policy, forbidden_paths: ['/home/ann', '/home/ann/skills/b'] }, workspace: { root: ROOT } }
  const shown = ['/home/ann/skills/a', '/home/ann/skills/b']
  expect(() => checkCommand('python3 /home/ann/skills/a/scripts/run.py', by, shown)).not.toThrow()
  for (const path of ['a/../../secret.key', 'b/x', 'c/x', ''])
    expect(() => checkCommand(`python3 /home/ann/skills/${path}`, by, shown)).toThrow('forbidden_paths')
})
