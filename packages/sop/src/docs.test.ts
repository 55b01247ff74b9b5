import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseSopMd } from './definition/parse-sop-md.ts'
import { parseSopToml } from './definition/parse-sop-toml.ts'

const docs = readFileSync(new URL('../../../docs/sops.md', import.meta.url), 'utf8')
const blocks = (language: string) =>
  [...docs.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(([, block]) => block ?? '')

test('the example files in docs/sops.md parse without problems', async () => {
  const [toml = ''] = blocks('toml')
  const head = await parseSopToml(toml, 'SOP.toml', Date.UTC(2026, 2, 1))
  expect([head.value?.sop.name, head.value?.triggers.length, head.problems]).toEqual(['deploy', 2, []])
  const { steps, problems } = parseSopMd(blocks('markdown')[0] ?? '')
  expect(problems).toEqual([])
  expect(steps.map(({ title, kind, tools, requiresConfirmation }) => [title, kind, tools, requiresConfirmation])).toEqual([
    ['Check the build', 'execute', ['http_request'], false],
    ['Approve', 'checkpoint', null, false],
    ['Roll out', 'execute', ['shell'], true],
  ])
  expect(steps[2]?.body).toBe('Run the script and report what it prints:\n\n~~~sh\n./deploy.sh --to production\n~~~')
})
