/** A site with one page for each means by which a page can make the browser send a request to another host. */
import { createServer, type Server } from 'node:http'
import { type Listening, listenOnLoopback } from '@sluice/testkit/loopback-server'

export interface Site extends Listening {
  readonly port: number
  /** The number of connections so far. */
  readonly connections: number
  /** The requested paths. */
  readonly paths: readonly string[]
}

const script = (text: string) => `<script>${text}</script>`
/** The script expression for the target URL. */
const to = "new URL(location).searchParams.get('to')"

/** The bodies of pages that request `url`, by the kind of request. */
export const VECTORS = {
  'a meta refresh': (url: string) => `<meta http-equiv=refresh content="0;url=${url}">`,
  'location.assign': () => script(`setTimeout(() => location.assign(${to}), 0)`),
  'a link clicked by a script': (url: string) => `<a id=a href="${url}">x</a>${script('setTimeout(() => a.click(), 0)')}`,
  'a form posted': (url: string) => `<form id=f method=post action="${url}"></form>${script('setTimeout(() => f.submit(), 0)')}`,
  'an iframe': (url: string) => `<iframe src="${url}"></iframe>`,
  'an iframe of a data: page': (url: string) => `<iframe src="data:text/html,<img src='${url}'>"></iframe>`,
  'an iframe of srcdoc': (url: string) => `<iframe srcdoc="<img src='${url}'>"></iframe>`,
  'an image': (url: string) => `<img src="${url}">`,
  'an object': (url: string) => `<object data="${url}" type="text/html"></object>`,
  'a video': (url: string) => `<video src="${url}" preload=auto></video>`,
  'a script': (url: string) => `<script src="${url}"></script>`,
  'a style sheet': (url: string) => `<link rel=stylesheet href="${url}">`,
  'a preload': (url: string) => `<link rel=preload as=image href="${url}">`,
  'a frame in a popup': () => script(`setTimeout(() => open(${to}), 0)`),
  fetch: () => script(`fetch(${to}, {mode: 'no-cors'}).catch(() => 0)`),
  'an XMLHttpRequest': () => script(`const x = new XMLHttpRequest(); x.open('GET', ${to}); x.send()`),
  'a beacon': () => script(`navigator.sendBeacon(${to}, 'x')`),
  'an EventSource': () => script(`new EventSource(${to})`),
  'a WebSocket': () => script(`new WebSocket(${to}.replace('http', 'ws'))`),
  'a worker': () =>
    script(`new Worker(URL.createObjectURL(new Blob(['fetch(' + JSON.stringify(${to}) + ', {mode: "no-cors"}).catch(() => 0)'])))`),
  'a WebSocket of a worker': () =>
    script(`new Worker(URL.createObjectURL(new Blob(['new WebSocket(' + JSON.stringify(${to}.replace('http', 'ws')) + ')'])))`),
  'a redirect of an image': (url: string) => `<img src="/redirect?to=${encodeURIComponent(url)}">`,
  'a redirect of fetch': (url: string) => script(`fetch('/redirect?to=${encodeURIComponent(url)}', {mode: 'no-cors'}).catch(() => 0)`),
  'a redirect of an iframe': (url: string) => `<iframe src="/redirect?to=${encodeURIComponent(url)}"></iframe>`,
} as const
export type Vector = keyof typeof VECTORS

/** Serves `/by/<vector>?to=<url>`, `/redirect?to=<url>`, `/download`, `/never` (which never answers) and the given pages. */
export async function startSite(pages: Readonly<Record<string, string>> = {}): Promise<Site> {
  const paths: string[] = []
  let connections = 0
  const server: Server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://site')
    paths.push(url.pathname)
    const target = url.searchParams.get('to') ?? ''
    if (url.pathname === '/never') return
    if (url.pathname === '/redirect') return void response.writeHead(302, { location: target }).end()
    if (url.pathname === '/download') return void response.writeHead(200, { 'content-disposition': 'attachment' }).end('x')
    const vector = VECTORS[decodeURIComponent(url.pathname.slice('/by/'.length)) as Vector]
    const body = vector?.(target) ?? pages[url.pathname]
    response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'text/html; charset=utf-8' })
    response.end(`<!doctype html><title>${url.pathname}</title>${body ?? 'nothing'}`)
  })
  server.on('connection', () => {
    connections++
  })
  const listening = await listenOnLoopback(server)
  return {
    ...listening,
    port: Number(new URL(listening.url).port),
    paths,
    get connections() {
      return connections
    },
  }
}
