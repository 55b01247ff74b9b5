/** Opens the places of notifications that a person presses, which the worker passes on (packages/web-push/src/worker-script.ts). */
import { say } from '../ui/toast.tsx'

/** Whether something was typed since the present place was opened: it may not be saved, and would be lost with the place. */
let isTyped = false

export function followNotifications(): void {
  document.addEventListener('input', () => {
    isTyped = true
  })
  window.addEventListener('hashchange', () => {
    isTyped = false
  })
  // Without TLS a browser has no `serviceWorker`.
  const workers: ServiceWorkerContainer | undefined = navigator.serviceWorker
  workers?.addEventListener('message', ({ data }: MessageEvent<{ readonly title: string; readonly place: string }>) => {
    if (!isTyped) location.hash = data.place
    else if (location.hash !== data.place) say(`${data.title}. This place stays open, because what was typed here may not be saved.`)
  })
}
