/** The form of the guides in `docs/guides`. `guides.slow.test.ts` runs their commands. */
import { describe, expect, test } from 'vitest'
import { parseGuide, readGuides } from './guide.ts'

/** `sh` is run, `console` is output, `text` is not run and says why; the others are the contents of files. */
const LANGUAGES = ['sh', 'console', 'text', 'toml', 'ini', 'json', 'yaml', 'nginx', 'caddy', 'xml', 'promql']
/** Commands that need another machine. More of them mean that the guides are less tested. */
const NOT_RUN_MAX = 24

const guides = readGuides()
const blocks = guides.flatMap(({ name, blocks }) => blocks.map((block) => ({ at: `${name}:${block.line}`, ...block })))

describe('a guide', () => {
  test('has blocks with languages, needs and notes', () => {
    const page = [
      '<!-- needs: nginx, root -->',
      '# Title',
      '<!-- file: /etc/nginx/conf.d/sluice.conf -->',
      ...['```nginx', 'server {', '}', '```'],
      ...['```sh', 'nginx -t', '```'],
      '<!-- not run: needs a second machine -->',
      ...['```text', 'ssh other', '```', ''],
    ]
    expect(parseGuide('proxy.md', page.join('\n'))).toEqual({
      name: 'proxy.md',
      needs: ['nginx', 'root'],
      blocks: [
        { language: 'nginx', text: 'server {\n}\n', line: 4, file: '/etc/nginx/conf.d/sluice.conf' },
        { language: 'sh', text: 'nginx -t\n', line: 8 },
        { language: 'text', text: 'ssh other\n', line: 12, notRun: 'needs a second machine' },
      ],
    })
  })

  test('must close its blocks', () => {
    expect(() => parseGuide('open.md', '# Title\n\n```sh\nls\n')).toThrow('The block at open.md:3 is not closed.')
  })
})

describe('the blocks of docs/guides', () => {
  test('have a language that says whether they are run', () => {
    expect(blocks.filter(({ language }) => !LANGUAGES.includes(language)).map(({ at, language }) => `${at} ${language}`)).toEqual([])
  })

  test('of commands are run, except for the ones with a reason not to', () => {
    const notRun = blocks.filter(({ language }) => language === 'text').map(({ at, notRun }) => `${at}: ${notRun ?? ''}`)
    if (notRun.length > 0) console.info(`Not run, of docs/guides:\n  ${notRun.join('\n  ')}`)
    expect(notRun.filter((line) => line.endsWith(': '))).toEqual([])
    expect(notRun.length).toBeLessThanOrEqual(NOT_RUN_MAX)
  })
})
