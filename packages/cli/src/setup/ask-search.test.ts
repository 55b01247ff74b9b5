import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { scratch } from '@sluice/qa/daemons/bundle'
import type { Feature } from '@sluice/sdk'
import web from '@sluice/tool-web'
import { expect, onTestFinished, test } from 'vitest'
import { createOutput } from '../output.ts'
import { askSearch } from './ask-search.ts'

/** Asks for the search service, and answers in turn. */
async function ask(toml: string, answers: readonly string[], features: readonly Feature[] = [web]) {
  const { dir, dispose } = scratch(toml)
  onTestFinished(dispose)
  const configFile = join(dir, 'config.toml')
  const text = { out: '' }
  const streams = { stdout: { write: (data: unknown) => (text.out += data) }, stderr: { write: (data: string) => (text.out += data) } }
  const source = { configFile, dataDir: dir, features, env: {}, out: createOutput(streams, {}) }
  const asked: string[] = []
  const left = [...answers]
  const dialogue = {
    ask: async (question: string) => {
      asked.push(question)
      return left.shift() ?? ''
    },
  }
  await askSearch(source as never, dialogue)
  return { asked, out: text.out, file: readFileSync(configFile, 'utf8') }
}

test('writes the service, and its key encrypted', async () => {
  const { asked, file, out } = await ask('', ['brave', 'key-0123456789'])
  expect(asked).toHaveLength(3)
  expect(file).toContain('search = "brave"')
  expect(file).not.toMatch(/key-0123456789|search_url/)
  expect(out).toContain('[tools.web] search = "brave"')
})

test('writes nothing for an empty answer, and refuses an unknown service', async () => {
  expect((await ask('', [''])).file).toBe('')
  const { file, out } = await ask('', ['askjeeves'])
  expect(file).toBe('')
  expect(out).toContain('search')
})

test('asks nothing where a service is set, or the build cannot search', async () => {
  expect((await ask('[tools.web]\nsearch = "searxng"\nsearch_url = "http://127.0.0.1/x"\n', [])).asked).toEqual([])
  expect((await ask('', [], [])).asked).toEqual([])
})
