import { openPolicy } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { asksForArguments } from './check-command.ts'

const LISTED = { ...openPolicy, level: 'supervised', allowed_commands: ['git'] } as const
const asks = (command: string): boolean => asksForArguments(command, LISTED)

test.each([
  'git status --short',
  'git log --oneline --graph -20 --author=ann -- src',
  'git --no-pager diff --stat HEAD~1',
  'git show --name-only HEAD',
  'git grep -n "a b" -- src',
  'git add -A && git commit -m "fix: it"',
  'git checkout -b topic',
  'git push -u origin main --force-with-lease',
  'git clone --depth 1 https://host.example/x.git',
  'git stash list',
  'npm test',
  'npm run build -- --watch',
  'cargo test --workspace -p core -- --nocapture',
  'node script.js --eval x',
  'node --test',
  'python3 tool.py -c 1',
  'sh run.sh +x',
  'pip list --format=json',
  'tar -czf a.tar.gz src',
  'tar xzf a.tar.gz -C out --strip-components=1',
  'tar tf a.tar',
  'sort -k2,2n -u --reverse a',
  'split -l 100 a part-',
  "sed -n '1,5p' a",
  "sed -E 's/a+/b/g; /x/d' a",
  "sed -i 's|/old|/new|' a",
  "awk -F, '{ print $1 }' a",
  'ls -la; cat a | head -n 3 | wc -l',
  'find . -name "*.ts" -type f',
  'make all --anything',
])('%j runs where the shell is auto-approved', (command) => {
  expect(asks(command)).toBe(false)
})

test.each([
  "git grep --open='touch x' y",
  "git grep -O'touch x' y",
  'git log --output=x',
  'git diff --output x',
  'git diff --ext-diff',
  'git diff --no-index /etc/passwd x',
  'git archive -o x HEAD',
  'git bundle create x HEAD',
  'git remote-ext x "sh -c touch% x"',
  'git unknown-alias',
  'git clone --upload-pack=x y',
  'git fetch --upload x y',
  'git rebase --exec x',
  'git --exec-path=. status',
  'git -C /elsewhere status',
  'git format-patch -o out HEAD~1',
  'git log -p --textconv',
  'npm exe -- touch x',
  'npm x y',
  'npm --script-shell=x test',
  'npm run x --script-shell=y',
  'cargo build --target-dir /tmp/x',
  'cargo install x',
  'node',
  'node -',
  'echo x | python3',
  'python3 -i a.py',
  'node --require ./x a.js',
  'bash',
  "bash +c 'touch x'",
  'sh -x a.sh',
  'tar -cf x --use=y a',
  'tar -cf x --use-compress-program=y a',
  "tar cIf 'touch x;cat' y a",
  "tar -cIf 'x' y a",
  'tar -xf a --to-com=x',
  'tar xf host:file',
  'tar -cPf x /etc',
  "sed '1etouch x' a",
  "sed 's/a/b/e' a",
  "sed 's,x,y,ge' a",
  "sed -n 'wx' a",
  "sed '/a/ w x' a",
  "sed 'r /etc/passwd' a",
  'sed -f script a',
  'sort -o x a',
  'sort --compress-program=x a',
  'sort --out=x a',
  "split --filter='touch x' a",
  'awk -f script a',
  'awk -l x a',
  'find . -fprint0 x',
  'find . -fls x',
  'ls --hyper a',
  'date -s 1',
  'cat --unknown a',
])('%j asks though the shell is auto-approved', (command) => {
  expect(asks(command)).toBe(true)
})

test('nothing asks for its arguments where the operator allows any program', () => {
  expect(asksForArguments('git log --output=x', { ...LISTED, level: 'full' })).toBe(false)
  expect(asksForArguments('git log --output=x', { ...LISTED, allowed_commands: ['*'] })).toBe(false)
})
