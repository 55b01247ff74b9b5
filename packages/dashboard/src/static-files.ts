/** Serves the files of a folder that a build has hashed and compressed: `index.html`, and `assets/<name>-<hash>.<ending>`. */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { AppError } from '@sluice/sdk'

/**
 * The policy of a page: everything comes from this daemon, no script is in the page itself, and no other page frames it. The styles in the
 * page are allowed by their hash.
 */
const pagePolicy = (page: string): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    ["style-src 'self'", ...stylesOf(page).map((style) => `'sha256-${createHash('sha256').update(style).digest('base64')}'`)].join(' '),
    "img-src 'self' data: blob:",
    "font-src 'self'",
    "media-src 'self' blob:",
    "connect-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    // The address of the worker that shows notifications (page/src/data/push.ts).
    'trusted-types sluice-worker',
  ].join('; ')

/** The contents of the style elements of a page. */
const stylesOf = (page: string): string[] =>
  page
    .split('<style>')
    .slice(1)
    .map((rest) => rest.split('</style>')[0] ?? '')

/** The page with its menu as HTML. A browser whose page was last signed in as an operator gets it: a cookie of the page says so. */
const MENU_PAGE = 'menu.html'

/** The cookie holds no secret and gives no right: it chooses how much of the page is HTML. Its name has the port that the browser sees. */
function hasMenu(headers: Headers): boolean {
  const port = /:(\d+)$/.exec(headers.get('host') ?? '')?.[1]
  const names = port === undefined ? ['sluice_role_80', 'sluice_role_443'] : [`sluice_role_${port}`]
  const cookies = (headers.get('cookie') ?? '').split(';').map((cookie) => cookie.trim())
  return names.some((name) => cookies.includes(`${name}=operator`))
}

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
  '.webp': 'image/webp',
  '.woff2': 'font/woff2',
}

/** The encodings that a build writes next to a file, the best one first. */
const ENCODINGS = [
  { name: 'br', ending: '.br' },
  { name: 'gzip', ending: '.gz' },
] as const

const YEAR_SECS = 31_536_000

export class StaticFiles {
  readonly #folder: string
  #names: Promise<ReadonlySet<string>> | undefined
  /** The contents of the asked files of `assets`. Unread answers share them. */
  readonly #assets = new Map<string, Promise<Buffer>>()

  constructor(folder: string) {
    this.#folder = folder
  }

  /**
   * The page. Browsers ask for it again each time, and get it only if it has changed. Its files come next, so a build that replaced the
   * folder is noticed here.
   */
  async page(headers: Headers): Promise<Response> {
    this.#names = listFiles(this.#folder)
    const names = await this.#names
    for (const kept of this.#assets.keys()) if (!names.has(kept)) this.#assets.delete(kept)
    const name = hasMenu(headers) && names.has(MENU_PAGE) ? MENU_PAGE : 'index.html'
    const found = await this.#read(name, headers)
    if (!found) throw new AppError('unavailable', 'The page is not built: run `npm run build -- standard`')
    const plain = await readFile(join(this.#folder, name), 'utf8')
    const tag = `"${createHash('sha256').update(found.body).digest('base64url').slice(0, 22)}"`
    const policy = {
      'content-security-policy': pagePolicy(plain),
      'permissions-policy': 'camera=(), geolocation=(), payment=(), usb=()',
      'cache-control': 'no-cache',
      vary: 'accept-encoding, cookie',
      etag: tag,
    }
    const known = (headers.get('if-none-match') ?? '').split(',').map((each) => each.trim().replace(/^W\//, ''))
    if (known.includes(tag)) return new Response(null, { status: 304, headers: policy })
    return new Response(found.body, { headers: { ...found.headers, ...policy } })
  }

  /** A file of `assets`, whose name changes with its content: browsers keep it. Throws `not_found`. */
  async asset(name: string, headers: Headers): Promise<Response> {
    const found = await this.#read(`assets/${name}`, headers)
    if (!found) throw new AppError('not_found', 'There is no such file')
    return new Response(found.body, {
      headers: { ...found.headers, 'cache-control': `public, max-age=${YEAR_SECS}, immutable`, vary: 'accept-encoding' },
    })
  }

  /** Reads only names that the folder was found to have, so that no name leads out of it. */
  async #read(name: string, headers: Headers) {
    this.#names ??= listFiles(this.#folder)
    const names = await this.#names
    const type = TYPES[extname(name)]
    if (!names.has(name) || type === undefined) return undefined
    const accepted = acceptedEncodings(headers.get('accept-encoding') ?? '')
    const encoding = ENCODINGS.find((each) => accepted.has(each.name) && names.has(name + each.ending))
    const body = await this.#contentOf(name + (encoding?.ending ?? ''))
    return { body, headers: { 'content-type': type, ...(encoding && { 'content-encoding': encoding.name }) } }
  }

  /** Reads a file of `assets` once: its name has the hash of its content. */
  async #contentOf(name: string): Promise<Buffer> {
    const path = join(this.#folder, name)
    if (!name.startsWith('assets/')) return readFile(path)
    const known = this.#assets.get(name)
    if (known) return known
    const read = readFile(path)
    this.#assets.set(name, read)
    read.catch(() => this.#assets.delete(name))
    return read
  }
}

async function listFiles(folder: string): Promise<ReadonlySet<string>> {
  const list = async (path: string, prefix: string): Promise<string[]> => {
    const entries = await readdir(path, { withFileTypes: true }).catch(() => [])
    return entries.filter((entry) => entry.isFile()).map(({ name }) => prefix + name)
  }
  return new Set([...(await list(folder, '')), ...(await list(join(folder, 'assets'), 'assets/'))])
}

/** Returns the encodings that a client accepts: the ones that it names with a weight other than 0. */
function acceptedEncodings(header: string): ReadonlySet<string> {
  const accepted = new Set<string>()
  for (const part of header.split(',')) {
    const [name = '', ...parameters] = part.split(';').map((each) => each.trim().toLowerCase())
    const isRefused = parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter))
    if (!isRefused) accepted.add(name)
  }
  return accepted
}
