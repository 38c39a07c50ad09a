// The largest control reply, the state of the mesh, between value and Cap'n Proto form; used by control.cpp only.
// take_mesh throws what schema/wire.h says.
#pragma once

#include "schema/control.capnp.h"
#include "schema/control/control.h"

namespace tg::schema {

// Writes the first run_count runs, the newest.
void put_mesh(wire::MeshStatus::Builder to, const MeshStatus& mesh, std::size_t run_count);
MeshStatus take_mesh(wire::MeshStatus::Reader from);

}  // namespace tg::schema
