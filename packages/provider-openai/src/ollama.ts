/** `[provider] kind = "ollama"`: models on a machine of one's own, through Ollama's chat-completions endpoint. */
import { withoutTrailing } from '@sluice/kit'
import { chatCompletions } from './chat-completions.ts'

const PORT = 11_434
const BASE_URL = `http://127.0.0.1:${PORT}/v1`
/** The model used when the environment names a server and no model. */
const DETECTED_MODEL = 'llama3.2'

export const ollama = chatCompletions('ollama', {
  baseUrl: BASE_URL,
  detect({ OLLAMA_HOST, OLLAMA_MODEL }) {
    if (!OLLAMA_HOST) return undefined
    return { kind: 'ollama', base_url: ollamaUrl(OLLAMA_HOST), model: OLLAMA_MODEL || DETECTED_MODEL }
  },
})

/**
 * `OLLAMA_HOST` in its own spellings: `host`, `host:port`, `:port`, a URL. It is also what a server binds to, so "every
 * address" means this machine. What is no address at all is returned as written, for `load` to refuse.
 */
export function ollamaUrl(host: string): string {
  const spelled = host.includes('://') ? host : `http://${host.startsWith(':') ? '127.0.0.1' : ''}${host}`
  if (!URL.canParse(spelled)) return host
  const url = new URL(spelled)
  if (!host.includes('://') && !/:\d+$/.test(url.host) && !/:\d+\/*$/.test(host)) url.port = String(PORT)
  if (['0.0.0.0', '[::]'].includes(url.hostname)) url.hostname = '127.0.0.1'
  return `${withoutTrailing(url.href, '/')}/v1`
}
