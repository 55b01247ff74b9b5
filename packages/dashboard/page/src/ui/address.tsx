/** The address under which platforms call this daemon, to paste into their settings. */
import { BASE } from '../data/base.ts'
import { useApi } from '../data/queries.ts'
import { Copy } from './controls.tsx'

const LOCAL_NAME = /^(?:localhost|.*\.localhost|127\..*|\[::1\]|10\..*|192\.168\..*|172\.(?:1[6-9]|2\d|3[01])\..*)$/

/** Returns `[gateway] public_url`, or else the address of this page, without a slash at its end. */
export function usePublicUrl(): string {
  const config = useApi('/api/config', {})
  const set = config.data?.keys.find(({ key }) => key === 'gateway.public_url')?.value
  return (typeof set === 'string' ? set : BASE.href).replace(/\/$/, '')
}

/** Returns why a platform cannot call an address; undefined where nothing speaks against it. */
function problemOf(url: string): string | undefined {
  const { hostname, protocol } = new URL(url)
  if (LOCAL_NAME.test(hostname)) return 'It is not reachable from outside: this address is of this machine or network.'
  return protocol === 'https:' ? undefined : 'Most platforms refuse it, because it has no HTTPS.'
}

/** An address with a button that copies it, and what is wrong with it. */
export function Address({ url }: { readonly url: string }) {
  const problem = problemOf(url)
  return (
    <div class="stack">
      <div class="row">
        <code class="link">{url}</code> <Copy text={url} />
      </div>
      {problem && (
        <p class="quiet">
          {problem} A platform needs the public address of a proxy or tunnel, with the same path:{' '}
          <a href="#/configuration?section=gateway">
            set <code>[gateway] public_url</code>
          </a>
          .
        </p>
      )}
    </div>
  )
}
