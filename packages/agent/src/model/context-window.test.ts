import { expect, test } from 'vitest'
import { contextWindow } from './context-window.ts'

const unknown = { listed: undefined, learnt: undefined }

test.each([
  ['the setting first', { kind: 'openai', model: 'gpt-5', context_window: 5000 }, { listed: 9000, learnt: 100 }, 5000, 'setting'],
  ['then the endpoint', { kind: 'openai', model: 'gpt-5' }, { listed: 9000, learnt: 100 }, 9000, 'endpoint'],
  ['then a refusal', { kind: 'openai', model: 'gpt-5' }, { listed: undefined, learnt: 6000 }, 6000, 'refusal'],
  ['then the name of the model', { kind: 'openrouter', model: 'anthropic/claude-haiku-5-5' }, unknown, 200_000, 'family'],
  ['and 32,000', { kind: 'openai', model: 'mine' }, unknown, 32_000, 'default'],
  ['no name on a local server', { kind: 'ollama', model: 'qwen3' }, unknown, 32_000, 'default'],
])('the window is known by %s', (_, settings, found, tokens, source) => {
  expect(contextWindow(settings, found)).toEqual({ tokens, source })
})
