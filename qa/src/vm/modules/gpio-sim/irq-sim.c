// SPDX-License-Identifier: GPL-2.0-or-later
/* The simulated interrupts that gpio-sim needs, wrapped as a module because the kernel source does not build irq_sim.c as one. */
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/module.h>

/* Modules cannot call irq_to_desc(); handling an interrupt by its number calls the same handler. */
#define irq_to_desc(number) (number)
#define handle_simple_irq(number) generic_handle_irq(number)
#include "irq_sim.c"

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Simulated interrupts");
