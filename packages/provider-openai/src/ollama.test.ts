import { expect, it } from 'vitest'
import { ollamaUrl } from './ollama.ts'

it.each([
  ['127.0.0.1', 'http://127.0.0.1:11434/v1'],
  ['box.local:8080', 'http://box.local:8080/v1'],
  ['box.local:80', 'http://box.local/v1'],
  [':9999', 'http://127.0.0.1:9999/v1'],
  ['0.0.0.0', 'http://127.0.0.1:11434/v1'],
  ['[::]:11434', 'http://127.0.0.1:11434/v1'],
  ['http://box.local', 'http://box.local/v1'],
  ['https://box.local:1234/', 'https://box.local:1234/v1'],
  ['not an address', 'not an address'],
])('reads OLLAMA_HOST=%s as %s', (host, url) => {
  expect(ollamaUrl(host)).toBe(url)
})
