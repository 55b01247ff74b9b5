/** The provider `[provider] kind = "ollama"`: local models through the chat completions endpoint of Ollama. */
import { withoutTrailing } from '@sluice/kit'
import type { Provider } from '@sluice/sdk'
import { chatCompletions } from './chat-completions.ts'

const PORT = 11_434
const BASE_URL = `http://127.0.0.1:${PORT}/v1`
/** The model used when the environment names a server and no model. */
const DETECTED_MODEL = 'llama3.2'

const provider = chatCompletions('ollama', { baseUrl: BASE_URL }, ({ OLLAMA_HOST, OLLAMA_MODEL }) => {
  if (!OLLAMA_HOST) return undefined
  return { kind: 'ollama', base_url: ollamaUrl(OLLAMA_HOST), model: OLLAMA_MODEL || DETECTED_MODEL }
})

export const ollama: Provider = { ...provider, usual: { baseUrl: BASE_URL, model: DETECTED_MODEL } }

/**
 * Returns the base URL for `OLLAMA_HOST`, which is a `host`, `host:port`, `:port` or a URL. The Ollama server binds to the
 * same variable, so 0.0.0.0 and [::] mean this machine. Text that is not an address is returned unchanged, and `load`
 * rejects it.
 */
export function ollamaUrl(host: string): string {
  const spelled = host.includes('://') ? host : `http://${host.startsWith(':') ? '127.0.0.1' : ''}${host}`
  if (!URL.canParse(spelled)) return host
  const url = new URL(spelled)
  if (!host.includes('://') && !/:\d+$/.test(url.host) && !/:\d+\/*$/.test(host)) url.port = String(PORT)
  if (['0.0.0.0', '[::]'].includes(url.hostname)) url.hostname = '127.0.0.1'
  return `${withoutTrailing(url.href, '/')}/v1`
}
